import { useEffect, useRef } from 'preact/hooks';

interface Props {
  /** What the server said of the key before, if there was one. */
  trouble: string;
  onKey: (key: string) => void;
}

export function KeyForm({ trouble, onKey }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current!.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const key = input.current!.value.trim();
    if (key) onKey(key);
  };
  return (
    <form class="key" onSubmit={submit}>
      <h2>This server needs a key</h2>
      <label>
        API key
        <input ref={input} type="password" autocomplete="off" spellcheck={false} aria-describedby="key-note" />
      </label>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      <p id="key-note" class="hint">It stays in this tab and is forgotten when the tab is closed.</p>
      <button type="submit" class="strong">Use this key</button>
    </form>
  );
}
