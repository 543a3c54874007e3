// OpenAI's client for Node against our server, which served.py has started.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const require = createRequire(`${process.env.TRIPTYCH_CLIENTS}/`);
const OpenAI = require('openai').default ?? require('openai');

const client = new OpenAI({ baseURL: process.env.TRIPTYCH_URL, apiKey: process.env.TRIPTYCH_KEY, maxRetries: 0 });
const picture = readFileSync(new URL('../eval/demo/images/074.jpg', import.meta.url)).toString('base64');
const aboutPicture = [{
  role: 'user',
  content: [{ type: 'image_url', image_url: { url: `data:image/jpeg;base64,${picture}` } },
    { type: 'text', text: 'What does the text say?' }],
}];
const text = [{ role: 'user', content: 'What is it?' }];
const create = (fields) => client.chat.completions.create({ model: 'demo', messages: text, ...fields });

test('lists models', async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.deepEqual(names, ['demo', 'gpt-demo']);
});

test('answers about a picture', async () => {
  const answer = await create({ messages: aboutPicture });
  assert.equal(answer.choices[0].message.content, 'AHEW');
  assert.equal(answer.choices[0].message.refusal, null);
  assert.match(answer._request_id, /^req_/);
});

test('streams', async () => {
  const stream = await create({ messages: aboutPicture, stream: true, stream_options: { include_usage: true } });
  let answer = '';
  let usage = null;
  for await (const chunk of stream) {
    answer += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(answer, 'AHEW');
  assert.ok(usage.prompt_tokens > 576);
});

test('gathers a stream as its helper does', async () => {
  const runner = client.chat.completions.stream({ model: 'demo', messages: aboutPicture });
  assert.equal(await runner.finalContent(), 'AHEW');
});

test('leaves a stream', async () => {
  for (let i = 0; i < 8; ++i) {
    const stream = await create({ stream: true, ignore_eos: true });
    for await (const chunk of stream) {
      assert.equal(chunk.object, 'chat.completion.chunk');
      stream.controller.abort();
      break;
    }
  }
  assert.equal((await create({ messages: aboutPicture })).choices[0].message.content, 'AHEW');
});

test('raises what each mistake is', async () => {
  await assert.rejects(create({ model: 'other' }), OpenAI.NotFoundError);
  await assert.rejects(create({ n: 9 }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'n');
  const stranger = new OpenAI({ baseURL: process.env.TRIPTYCH_URL, apiKey: 'wrong', maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});
