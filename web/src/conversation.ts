import { useRef, useState } from 'preact/hooks';
import { ApiError, streamChat, type Usage } from './api';
import type { Picture } from './pictures';
import { fieldsOf, type Settings } from './settings';

export interface Question {
  text: string;
  pictures: Picture[];
}

export interface Answer {
  text: string;
  state: 'waiting' | 'streaming' | 'done' | 'stopped' | 'failed';
  finish?: string;
  error?: ApiError;
  usage?: Usage;
  /** From the request to the first piece of text, as the page saw it. */
  firstMs?: number;
}

export interface Turn {
  id: number;
  question: Question;
  answer: Answer;
}

/** How to ask: whom, as whom, and with which settings. */
export interface Asking {
  model: string;
  key: string;
  settings: Settings;
}

type Message = { role: string; content: string | object[] };

function questionMessage({ text, pictures }: Question): Message {
  if (pictures.length === 0) return { role: 'user', content: text };
  const parts: object[] = pictures.map((p) => ({ type: 'image_url', image_url: { url: p.uri } }));
  if (text) parts.push({ type: 'text', text });
  return { role: 'user', content: parts };
}

/** Turns without an answer are left out: a template wants question and answer by turns. */
function messagesOf(before: Turn[], question: Question, system: string): Message[] {
  const messages: Message[] = system.trim() ? [{ role: 'system', content: system }] : [];
  for (const turn of before) {
    if (!turn.answer.text) continue;
    messages.push(questionMessage(turn.question), { role: 'assistant', content: turn.answer.text });
  }
  return [...messages, questionMessage(question)];
}

/** Gathers one answer; `tell` gets what has changed of it. */
async function gather(body: object, key: string, signal: AbortSignal, tell: (change: Partial<Answer>) => void) {
  const start = performance.now();
  let text = '';
  try {
    for await (const { choices, usage } of streamChat(body, key, signal)) {
      if (usage) tell({ usage });
      const choice = choices[0];
      if (!choice) continue;
      if (choice.delta.content && !text) tell({ firstMs: performance.now() - start });
      text += choice.delta.content ?? '';
      tell({ text, state: 'streaming', ...(choice.finish_reason && { finish: choice.finish_reason }) });
    }
    tell({ state: 'done' });
  } catch (error) {
    if (signal.aborted) tell({ state: 'stopped' });
    else tell({ state: 'failed', error: error instanceof ApiError ? error : new ApiError(String(error), 0) });
  }
}

let lastId = 0;

export function useConversation(onError: (error: ApiError) => void) {
  const [turns, setTurns] = useState<Turn[]>([]);
  const running = useRef<AbortController | null>(null);

  async function ask(question: Question, before: Turn[], { model, key, settings }: Asking) {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    const turn: Turn = { id: ++lastId, question, answer: { text: '', state: 'waiting' } };
    setTurns([...before, turn]);
    const body = {
      model,
      messages: messagesOf(before, question, settings.system),
      ...fieldsOf(settings),
      stream: true,
      stream_options: { include_usage: true },
      timings: true,
    };
    await gather(body, key, abort.signal, (change) => {
      if (change.error) onError(change.error);
      setTurns((all) => all.map((t) => (t.id === turn.id ? { ...t, answer: { ...t.answer, ...change } } : t)));
    });
    if (running.current === abort) running.current = null;
  }

  const stop = () => running.current?.abort();
  const clear = () => {
    stop();
    setTurns([]);
  };
  const last = turns.at(-1)?.answer.state;
  return { turns, busy: last === 'waiting' || last === 'streaming', ask, stop, clear };
}
