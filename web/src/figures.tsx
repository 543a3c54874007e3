import type { Answer } from './conversation';

/** What the bar tells apart, and which of the server's stages each is made of. */
const groups = [
  { name: 'queue', stages: ['queue_ms', 'wait_ms'] },
  { name: 'prepare', stages: ['fetch_ms', 'process_ms'] },
  { name: 'media decode', stages: ['media_decode_ms'] },
  { name: 'encode', stages: ['encode_ms'] },
  { name: 'prefill', stages: ['prefill_ms'] },
  { name: 'decode', stages: ['decode_ms'] },
];

function duration(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms).toLocaleString('en')} ms`;
}

const count = (n: number) => n.toLocaleString('en');

/** Where an answer's time went, as a bar with its legend. */
function StageBar({ timings }: { timings: Record<string, number> }) {
  const parts = groups
    .map(({ name, stages }, i) => ({ name, hue: `stage-${i}`, ms: stages.reduce((sum, s) => sum + (timings[s] ?? 0), 0) }))
    .filter(({ ms }) => ms >= 0.05);
  return (
    <>
      <div class="bar" aria-hidden="true">
        {parts.map(({ hue, ms }) => <span key={hue} class={hue} style={{ flexGrow: ms }} />)}
      </div>
      <ul class="legend" aria-label="Time by stage">
        {parts.map(({ name, hue, ms }) => (
          <li key={hue}><i class={hue} />{name} <b>{duration(ms)}</b></li>
        ))}
      </ul>
    </>
  );
}

/** Times and counts of an answer that has ended. */
export function Figures({ answer: { usage, firstMs } }: { answer: Answer }) {
  if (!usage) return null;
  const { prompt_tokens: prompt, completion_tokens: completion, timings } = usage;
  const { image_tokens: image, cached_tokens: cached } = usage.prompt_tokens_details;
  const of = [image && `${count(image)} of pictures`, cached && `${count(cached)} cached`].filter(Boolean);
  const decodeMs = timings?.decode_ms ?? 0;
  const facts = [
    `${count(prompt)} prompt tokens${of.length ? ` (${of.join(', ')})` : ''}`,
    `${count(completion)} in the answer`,
    firstMs !== undefined && `first after ${duration(firstMs)}`,
    // The first token is prefill's.
    completion > 1 && decodeMs > 0 && `${count(Math.round(((completion - 1) * 1000) / decodeMs))} tokens/s`,
  ].filter(Boolean);
  return (
    <div class="figures">
      {timings && <StageBar timings={timings} />}
      <p>{facts.join(' · ')}</p>
    </div>
  );
}
