import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

const nearPx = 80;

/** Keeps the end of the page in view as it grows, unless the reader has scrolled up. */
export function useFollowing(turns: unknown[]) {
  const following = useRef(true);
  const page = document.documentElement;
  useEffect(() => {
    const onScroll = () => { following.current = page.scrollHeight - page.clientHeight - page.scrollTop < nearPx; };
    window.addEventListener('scroll', onScroll, { passive: true });
    return () => window.removeEventListener('scroll', onScroll);
  }, []);
  useLayoutEffect(() => { following.current = true; }, [turns.length]);
  useLayoutEffect(() => {
    if (following.current) page.scrollTo({ top: page.scrollHeight });
  }, [turns]);
}
