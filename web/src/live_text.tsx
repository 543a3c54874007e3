import { useEffect, useRef, useState } from 'preact/hooks';
import type { Turn } from './conversation';

const pauseMs = 2000;

/** Behind the last sentence or line that is whole. */
function wholeUntil(text: string): number {
  let end = 0;
  for (const match of text.matchAll(/[.!?。！？]["')\]]*\s|\n/g)) end = match.index + match[0].length;
  return end;
}

/**
 * The newest answer for screen readers: in whole sentences and with pauses between them, where the visible
 * text changes with every token.
 */
export function LiveText({ turn }: { turn: Turn | undefined }) {
  const [said, setSaid] = useState('');
  const told = useRef({ turn: 0, end: 0, at: 0 });
  useEffect(() => {
    if (!turn) return setSaid('');
    const { text, state } = turn.answer;
    if (told.current.turn !== turn.id) told.current = { turn: turn.id, end: 0, at: performance.now() };
    if (state === 'waiting') return setSaid('Waiting for the answer.');
    const ended = state !== 'streaming';
    const { end, at } = told.current;
    const until = ended ? text.length : wholeUntil(text);
    if (state === 'stopped' && until === end) return setSaid('Stopped.');
    if (until <= end || (!ended && performance.now() - at < pauseMs)) return;
    told.current = { turn: turn.id, end: until, at: performance.now() };
    setSaid(text.slice(end, until));
  }, [turn]);
  return <div class="unseen" role="status">{said || null}</div>;
}
