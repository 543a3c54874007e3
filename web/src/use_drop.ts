import { useEffect, useRef, useState } from 'preact/hooks';

/** Takes files dropped anywhere on the page; true while some are held over it. */
export function useDrop(onFiles: (files: FileList) => void): boolean {
  const [dragging, setDragging] = useState(false);
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    let depth = 0;  // enter and leave come for every element on the way
    const on = (name: 'dragenter' | 'dragover' | 'dragleave' | 'drop', handle: (files: FileList) => void) => {
      const listener = (event: DragEvent) => {
        if (!event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        handle(event.dataTransfer.files);
        setDragging(depth > 0);
      };
      window.addEventListener(name, listener);
      return () => window.removeEventListener(name, listener);
    };
    const offs = [
      on('dragenter', () => { ++depth; }),
      on('dragleave', () => { depth = Math.max(0, depth - 1); }),
      on('dragover', () => {}),
      on('drop', (files) => {
        depth = 0;
        take.current(files);
      }),
    ];
    return () => offs.forEach((off) => off());
  }, []);
  return dragging;
}
