import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, listModels } from './api';
import { Composer } from './composer';
import { useConversation, type Question } from './conversation';
import { Logo } from './icons';
import { KeyForm } from './key_form';
import { LiveText } from './live_text';
import { readPicture } from './pictures';
import { noSettings } from './settings';
import { SettingsPanel } from './settings_panel';
import { TurnView } from './turn_view';
import { useDrop } from './use_drop';
import { useFollowing } from './use_following';

const keyItem = 'triptych-key';
const noDraft: Question = { text: '', pictures: [] };

/** The models, the key that opens them, and what went wrong with either. */
function useServer() {
  const [key, setKey] = useState(sessionStorage.getItem(keyItem) ?? '');
  const [models, setModels] = useState<string[]>([]);
  const [error, setError] = useState<ApiError | null>(null);
  const load = async (withKey: string) => {
    try {
      setModels(await listModels(withKey));
      setError(null);
      sessionStorage.setItem(keyItem, withKey);
    } catch (e) {
      setError(e as ApiError);
    }
    setKey(withKey);
  };
  useEffect(() => void load(key), []);
  return { key, models, error, setError, load };
}

function Welcome() {
  return (
    <div class="welcome">
      <Logo size={56} />
      <h2>Ask about a picture</h2>
      <p>Drop one anywhere on this page, paste it, or choose a file. Questions without a picture work too.</p>
    </div>
  );
}

export function App() {
  const { key, models, error, setError, load } = useServer();
  const [chosen, setChosen] = useState('');
  const [settings, setSettings] = useState(noSettings);
  const [draft, setDraft] = useState(noDraft);
  const [trouble, setTrouble] = useState('');
  const box = useRef<HTMLTextAreaElement>(null);
  const { turns, busy, ask, stop, clear } = useConversation((e) => e.status === 401 && setError(e));

  const model = models.includes(chosen) ? chosen : (models[0] ?? '');
  const asking = { model, key, settings };
  const addFiles = async (list: Iterable<File>) => {
    const files = [...list];  // the page empties its own list before all are read
    setTrouble('');
    for (const file of files) {
      try {
        const picture = await readPicture(file);
        setDraft((d) => ({ ...d, pictures: [...d.pictures, picture] }));
      } catch (e) {
        setTrouble((e as Error).message);
      }
    }
    box.current?.focus();
  };
  const dragging = useDrop(addFiles);
  useFollowing(turns);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && stop();
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);

  const send = () => {
    const text = draft.text.trim();
    setTrouble('');
    if (!text && draft.pictures.length === 0) return box.current!.focus();
    setDraft(noDraft);
    void ask({ text, pictures: draft.pictures }, turns, asking);
  };
  const startAnew = () => {
    clear();
    box.current?.focus();
  };
  const retry = () => void ask(turns.at(-1)!.question, turns.slice(0, -1), asking);
  const locked = error?.status === 401;

  return (
    <>
      <header>
        <h1><Logo size={24} />Triptych <span>Playground</span></h1>
        <div class="controls">
          {models.length > 0 && (
            <select aria-label="Model" value={model} onChange={(e) => setChosen(e.currentTarget.value)}>
              {models.map((name) => <option key={name}>{name}</option>)}
            </select>
          )}
          <SettingsPanel settings={settings} onChange={setSettings} />
          <button type="button" class="quiet" onClick={startAnew}>New chat</button>
        </div>
      </header>
      <main>
        {locked && <KeyForm trouble={key ? error.message : ''} onKey={load} />}
        {error && !locked && (
          <p class="trouble" role="alert">
            {error.message} <button type="button" class="quiet" onClick={() => load(key)}>Try again</button>
          </p>
        )}
        <section class="conversation" aria-label="Conversation">
          {turns.length === 0 && !error && <Welcome />}
          {turns.map((turn, i) => (
            <TurnView key={turn.id} turn={turn} number={i + 1} onRetry={!busy && i + 1 === turns.length ? retry : undefined} />
          ))}
        </section>
        <LiveText turn={turns.at(-1)} />
        {!locked && (
          <Composer draft={draft} onDraft={setDraft} onFiles={addFiles} onSend={send} onStop={stop} busy={busy} trouble={trouble} box={box} />
        )}
      </main>
      {dragging && <div class="drop"><p>Drop the pictures</p></div>}
    </>
  );
}
