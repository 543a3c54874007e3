import { useEffect, useRef } from 'preact/hooks';
import { SettingsIcon } from './icons';
import { noSettings, type Settings } from './settings';

interface Props {
  settings: Settings;
  onChange: (settings: Settings) => void;
}

/** Closes a <details> by Escape, giving the focus back, and by a press elsewhere. */
function useClosing() {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const panel = details.current;
      if (event.key !== 'Escape' || !panel?.open) return;
      event.stopImmediatePropagation();
      panel.open = false;
      panel.querySelector('summary')!.focus();
    };
    const onPress = (event: PointerEvent) => {
      if (!details.current!.contains(event.target as Node)) details.current!.open = false;
    };
    // Before the page's own Escape, which stops an answer.
    window.addEventListener('keydown', onKey, true);
    window.addEventListener('pointerdown', onPress);
    return () => {
      window.removeEventListener('keydown', onKey, true);
      window.removeEventListener('pointerdown', onPress);
    };
  }, []);
  return details;
}

export function SettingsPanel({ settings, onChange }: Props) {
  const details = useClosing();
  const set = (name: keyof Settings) => (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    onChange({ ...settings, [name]: event.currentTarget.value });
  const number = (name: keyof Settings, label: string, limits: { min?: number; max?: number; step?: string }) => (
    <label>
      {label}
      <input type="number" inputMode="decimal" placeholder="model's own" value={settings[name]} onInput={set(name)} {...limits} />
    </label>
  );
  const changed = Object.values(settings).some((value) => value);
  return (
    <details class="settings" ref={details}>
      <summary class="quiet"><SettingsIcon />Settings{changed && <i class="mark" title="changed" />}</summary>
      <div class="panel">
        <label class="wide">
          System prompt
          <textarea rows={2} value={settings.system} onInput={set('system')} />
        </label>
        {number('temperature', 'Temperature', { min: 0, max: 2, step: '0.1' })}
        {number('top_p', 'Top p', { min: 0, max: 1, step: '0.05' })}
        {number('top_k', 'Top k', { min: 0, step: '1' })}
        {number('max_tokens', 'Most tokens', { min: 1, step: '1' })}
        {number('seed', 'Seed', { min: 0, step: '1' })}
        <label class="wide">
          Stop before, one text a line
          <textarea rows={2} value={settings.stop} onInput={set('stop')} />
        </label>
        <button type="button" class="quiet" onClick={() => onChange(noSettings)}>Reset</button>
      </div>
    </details>
  );
}
