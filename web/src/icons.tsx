import type { ComponentChildren } from 'preact';

const Icon = ({ children, size = 20 }: { children: ComponentChildren; size?: number }) => (
  <svg viewBox="0 0 24 24" width={size} height={size} fill="none" stroke="currentColor" stroke-width="2"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{children}</svg>
);

export const SendIcon = () => <Icon><path d="M12 19V5M5.5 11.5 12 5l6.5 6.5" /></Icon>;
export const StopIcon = () => <Icon><rect x="7" y="7" width="10" height="10" rx="1.5" fill="currentColor" /></Icon>;
export const PictureIcon = () => (
  <Icon><rect x="3.5" y="4.5" width="17" height="15" rx="3" /><circle cx="9" cy="10" r="1.6" /><path d="m4 17.5 5-4 3.5 2.5 3.5-3.5 4.5 4" /></Icon>
);
export const CloseIcon = () => <Icon size={14}><path d="M6 6l12 12M18 6 6 18" /></Icon>;
export const RetryIcon = () => <Icon size={15}><path d="M4 12a8 8 0 1 0 2.6-5.9M4 4.5V9h4.5" /></Icon>;
export const SettingsIcon = () => (
  <Icon size={17}><path d="M4 7h9M19 7h1M4 17h1M11 17h9" /><circle cx="16" cy="7" r="2.5" /><circle cx="8" cy="17" r="2.5" /></Icon>
);

/** An altarpiece of three panels, its wings half open. */
export const Logo = ({ size }: { size: number }) => (
  <svg class="logo" viewBox="0 0 32 32" width={size} height={size} fill="currentColor" aria-hidden="true">
    <path d="M2 7l7 3v16l-7 3z" opacity=".55" /><path d="M11 5h10v22H11z" /><path d="M30 7l-7 3v16l7 3z" opacity=".55" />
  </svg>
);
