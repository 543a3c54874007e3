import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Question } from './conversation';
import { CloseIcon, PictureIcon, SendIcon, StopIcon } from './icons';
import { pictureTypes } from './pictures';

interface Props {
  draft: Question;
  onDraft: (draft: Question) => void;
  onFiles: (files: FileList) => void;
  onSend: () => void;
  onStop: () => void;
  busy: boolean;
  trouble: string;
  box: RefObject<HTMLTextAreaElement | null>;
}

/** As high as its text. */
function useFittingHeight(box: RefObject<HTMLTextAreaElement | null>, text: string) {
  useLayoutEffect(() => {
    const { style } = box.current!;
    style.height = 'auto';
    style.height = `${box.current!.scrollHeight}px`;
  }, [box, text]);
}

function Thumbnails({ draft, onDraft, box }: Pick<Props, 'draft' | 'onDraft' | 'box'>) {
  if (draft.pictures.length === 0) return null;
  const remove = (id: number) => {
    onDraft({ ...draft, pictures: draft.pictures.filter((p) => p.id !== id) });
    box.current!.focus();  // the button that had the focus is gone
  };
  return (
    <ul class="thumbnails" aria-label="Pictures to send">
      {draft.pictures.map((p) => (
        <li key={p.id}>
          <img src={p.uri} alt={p.name} />
          <button type="button" aria-label={`Remove ${p.name}`} title="Remove" onClick={() => remove(p.id)}><CloseIcon /></button>
        </li>
      ))}
    </ul>
  );
}

export function Composer({ draft, onDraft, onFiles, onSend, onStop, busy, trouble, box }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  useFittingHeight(box, draft.text);
  const submit = (event: Event) => {
    event.preventDefault();
    if (busy) onStop();
    else onSend();
  };
  const onKey = (event: KeyboardEvent) => {
    // Enter that ends the choice of a character is the input method's.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!busy) onSend();
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = event.clipboardData?.files;
    if (!files?.length) return;
    event.preventDefault();
    onFiles(files);
  };
  const onPicked = () => {
    onFiles(picker.current!.files!);
    picker.current!.value = '';  // so that the same file can be chosen again
    box.current!.focus();
  };
  return (
    <form class="composer" aria-label="Question" onSubmit={submit}>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      <div class="card">
        <Thumbnails draft={draft} onDraft={onDraft} box={box} />
        <div class="row">
          <input ref={picker} type="file" hidden multiple accept={pictureTypes.join(',')} onChange={onPicked} />
          <button type="button" class="round" aria-label="Add pictures" title="Add pictures" onClick={() => picker.current!.click()}>
            <PictureIcon />
          </button>
          <textarea ref={box} rows={1} aria-label="Your question" aria-describedby="keys" placeholder="Ask a question" value={draft.text}
            onInput={(e) => onDraft({ ...draft, text: e.currentTarget.value })} onKeyDown={onKey} onPaste={onPaste} />
          <button type="submit" class="round strong" aria-label={busy ? 'Stop' : 'Send'} title={busy ? 'Stop' : 'Send'}>
            {busy ? <StopIcon /> : <SendIcon />}
          </button>
        </div>
      </div>
      <p id="keys" class="hint">Enter sends, Shift+Enter breaks the line, Escape stops.</p>
    </form>
  );
}
