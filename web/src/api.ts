// The server's API, as far as this page uses it.

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details: { cached_tokens: number; image_tokens: number };
  /** Milliseconds by stage: total_ms, queue_ms, ... */
  timings?: Record<string, number>;
}

export interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null }[];
  usage?: Usage | null;
}

/** What the server says is wrong, or that it says nothing (status 0). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly param: string | null = null,
  ) {
    super(message);
  }
}

interface ErrorBody {
  error: { message: string; param: string | null };
}

function errorOf(text: string, status: number): ApiError {
  try {
    const { error } = JSON.parse(text) as ErrorBody;
    return new ApiError(error.message, status, error.param);
  } catch {
    return new ApiError(`The server answered with status ${status} and no reason.`, status);
  }
}

async function request(path: string, key: string, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError('The server cannot be reached.', 0);
  }
  if (!response.ok) throw errorOf(await response.text(), response.status);
  return response;
}

/** The names of the models that the server has. */
export async function listModels(key: string): Promise<string[]> {
  const response = await request('v1/models', key);
  const { data } = (await response.json()) as { data: { id: string }[] };
  return data.map((model) => model.id);
}

/** The data of a stream's events, as they come. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      if (event.startsWith('data: ')) yield event.slice('data: '.length);
    }
  }
}

/** Asks for an answer and yields its chunks. Ends with an ApiError, or with what aborting `signal` throws. */
export async function* streamChat(body: object, key: string, signal: AbortSignal): AsyncGenerator<Chunk> {
  const response = await request('v1/chat/completions', key, { method: 'POST', body: JSON.stringify(body), signal });
  try {
    for await (const event of eventsOf(response.body!)) {
      if (event === '[DONE]') return;
      const chunk = JSON.parse(event) as Chunk | ErrorBody;
      if ('error' in chunk) throw errorOf(event, 200);
      yield chunk;
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
  }
  throw new ApiError('The connection broke off before the answer ended.', 0);
}
