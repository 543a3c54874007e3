/** As typed. What is empty is not sent, and is then as the checkpoint says. */
export interface Settings {
  system: string;
  temperature: string;
  top_p: string;
  top_k: string;
  max_tokens: string;
  seed: string;
  stop: string;
}

export const noSettings: Settings = {
  system: '', temperature: '', top_p: '', top_k: '', max_tokens: '', seed: '', stop: '',
};

export const numberSettings = ['temperature', 'top_p', 'top_k', 'max_tokens', 'seed'] as const;

/** The fields of a request that stand for the settings. */
export function fieldsOf(settings: Settings): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of numberSettings) {
    if (settings[name].trim()) fields[name] = Number(settings[name]);
  }
  const stop = settings.stop.split('\n').filter((line) => line);
  if (stop.length > 0) fields.stop = stop;
  return fields;
}
