// The Playground as a person meets it, by mouse and by keyboard.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, makeKeys, open, require, root, serve } from './served.mjs';

const picture = join(root, 'tests/eval/demo/images/074.jpg');
const question = 'What does the text say?';
const answer = 'AHEW';
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

let browser;
let server;
before(async () => { [browser, server] = await Promise.all([launch(), serve()]); });
after(async () => {
  await browser?.close();
  await server?.stop();
});

const shot = (page, name) => page.screenshot({ path: join(root, `build/web/${name}.png`) });
const box = (page) => page.getByLabel('Your question');
const lastAnswer = (page) => page.locator('.answer').last();
const ended = (page, turns) => page.locator('.figures').nth(turns - 1).waitFor();

/** Lets go of a file above the page, as a file manager does. */
async function drop(page, path, name, type = 'image/jpeg') {
  const base64 = readFileSync(path).toString('base64');
  const data = await page.evaluateHandle(([bytes, fileName, fileType]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], fileName, { type: fileType }));
    return transfer;
  }, [base64, name, type]);
  await page.dispatchEvent('main', 'dragenter', { dataTransfer: data });
  await page.getByText('Drop the pictures').waitFor();
  await page.dispatchEvent('main', 'drop', { dataTransfer: data });
}

async function askAboutPicture(page) {
  await drop(page, picture, '074.jpg');
  await box(page).fill(question);
  await page.getByRole('button', { name: 'Send' }).click();
  await ended(page, 1);
}

/** What axe finds wrong with the page as it is now. */
async function faults(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.html} ${n.failureSummary}`).join('; ')}`);
}

for (const scheme of ['light', 'dark']) {
  test(`answers about a dropped picture (${scheme})`, async () => {
    const fresh = await serve();  // with empty caches, so that every stage has something to do
    const { page, requests, complaints, close } = await open(browser, fresh.url, { colorScheme: scheme, reducedMotion: 'reduce' });
    await page.getByText('Ask about a picture').waitFor();
    await page.getByLabel('Model').waitFor();
    await shot(page, `${scheme}-empty`);
    assert.deepEqual(await faults(page), []);

    await askAboutPicture(page);
    assert.equal(await lastAnswer(page).innerText(), answer);
    const legend = await page.getByLabel('Time by stage').innerText();
    for (const stage of ['media decode', 'encode', 'prefill', 'decode']) assert.match(legend, new RegExp(`${stage}\\s\\d`));
    assert.match(await page.locator('.figures p').innerText(), /\(576 of pictures\) · 4 in the answer · first after .*ms · .* tokens\/s/);
    const widths = await page.locator('.bar span').evaluateAll((spans) => spans.map((s) => s.getBoundingClientRect().width));
    assert.ok(widths.length >= 3 && Math.max(...widths) > 100, `${widths}`);

    // A second question knows the picture, whose rows come from the cache.
    await box(page).fill('Describe the picture.');
    await box(page).press('Enter');
    await ended(page, 2);
    assert.match(await page.locator('.figures p').last().innerText(), /cached/);
    await shot(page, scheme);
    assert.deepEqual(await faults(page), []);
    await page.getByText('Settings').click();
    await shot(page, `${scheme}-settings`);
    assert.deepEqual(await faults(page), []);

    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red] = background.match(/\d+/g).map(Number);
    assert.equal(red < 128, scheme === 'dark', background);
    assert.deepEqual(complaints, []);
    assert.ok(requests.length >= 4);
    for (const url of requests) assert.ok(url.startsWith(fresh.url) || url.startsWith('data:'), url);
    await close();
    await fresh.stop();
  });
}

test('is worked by keyboard alone', async () => {
  const { page, close } = await open(browser, server.url);
  page.on('filechooser', (chooser) => chooser.setFiles([picture, picture]));
  await page.getByLabel('Model').waitFor();
  const focused = () => page.evaluate(() => {
    const e = document.activeElement;
    return e.getAttribute('aria-label') ?? e.textContent;
  });
  const tabTo = async (name) => {
    for (let i = 0; i < 20; ++i) {
      await page.keyboard.press('Tab');
      if ((await focused()) === name) return;
    }
    assert.fail(`Tab does not reach ${name}`);
  };
  for (const name of ['Model', 'Settings', 'New chat']) await tabTo(name);
  // Settings: opened, used and closed.
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.type('Be short.');
  await page.keyboard.press('Escape');
  assert.equal(await focused(), 'Settings');
  assert.equal(await page.getByLabel('System prompt').isVisible(), false);

  await tabTo('Add pictures');
  await page.keyboard.press('Enter');
  await page.getByLabel('Remove 074.jpg').nth(1).waitFor();
  assert.equal(await focused(), 'Your question');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  assert.equal(await focused(), 'Remove 074.jpg');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.thumbnails img').count(), 1);
  assert.equal(await focused(), 'Your question');

  await page.keyboard.type('What does');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('the text say?');
  assert.equal(await box(page).inputValue(), 'What does\nthe text say?');
  const sent = page.waitForRequest('**/v1/chat/completions');
  await page.keyboard.press('Enter');
  const { messages } = (await sent).postDataJSON();
  assert.deepEqual(messages.map((m) => m.role), ['system', 'user']);
  assert.equal(messages[1].content[1].text, 'What does\nthe text say?');
  await ended(page, 1);
  assert.notEqual(await lastAnswer(page).innerText(), '');
  assert.equal(await focused(), 'Your question');
  await close();
});

test('tells screen readers an answer once, and pauses', async () => {
  const { page, close } = await open(browser, server.url);
  await page.getByLabel('Model').waitFor();
  await page.evaluate(() => {
    globalThis.said = [];
    const status = document.querySelector('[role=status]');
    new MutationObserver(() => said.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true });
  });
  await askAboutPicture(page);
  assert.deepEqual(await page.evaluate(() => said), ['Waiting for the answer.', answer]);
  await close();
});

test('stops, tries again and begins anew', async () => {
  const { page, close } = await open(browser, server.url);
  await page.getByLabel('Model').waitFor();
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route('**/v1/chat/completions', async (route) => {
    await held;
    await route.continue().catch(() => {});  // the page has taken it back
  });
  await box(page).fill('Hello');
  await box(page).press('Enter');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.', { exact: true }).first().waitFor();
  release();
  await page.unrouteAll({ behavior: 'wait' });
  await page.getByRole('button', { name: 'Try again' }).click();
  await ended(page, 1);
  assert.equal(await page.locator('.turn').count(), 1);
  await page.getByRole('button', { name: 'New chat' }).click();
  assert.equal(await page.locator('.turn').count(), 0);
  await close();
});

test('sends the settings', async () => {
  const { page, close } = await open(browser, server.url);
  await page.getByLabel('Model').waitFor();
  await page.getByText('Settings').click();
  for (const [label, value] of [['Temperature', '0.7'], ['Top p', '0.9'], ['Top k', '20'], ['Most tokens', '3'], ['Seed', '7'], ['Stop before', 'x\ny']]) {
    await page.getByLabel(label).fill(value);
  }
  await box(page).fill('Hello');
  const sent = page.waitForRequest('**/v1/chat/completions');
  await box(page).press('Enter');
  const { temperature, top_p, top_k, max_tokens, seed, stop } = (await sent).postDataJSON();
  assert.deepEqual({ temperature, top_p, top_k, max_tokens, seed, stop },
    { temperature: 0.7, top_p: 0.9, top_k: 20, max_tokens: 3, seed: 7, stop: ['x', 'y'] });
  await ended(page, 1);
  await close();
});

test('says what is wrong in the words of the server', async () => {
  const { page, close } = await open(browser, server.url);
  await page.getByLabel('Model').waitFor();
  await drop(page, join(root, 'README.md'), 'notes.txt', 'text/plain');
  assert.match(await page.getByRole('alert').innerText(), /notes\.txt is no picture/);
  await drop(page, join(root, 'README.md'), 'broken.png', 'image/png');
  await page.locator('.thumbnails img').waitFor();
  await box(page).fill(question);
  await box(page).press('Enter');
  const alert = lastAnswer(page).getByRole('alert');
  await alert.waitFor();
  assert.equal(await alert.locator('code').innerText(), 'messages[0].content[0].image_url.url');
  assert.match(await alert.innerText(), /url: not a picture in a known format/);
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await shot(page, 'error');
  assert.deepEqual(await faults(page), []);
  await close();
});

test('asks for a key where one is needed', async () => {
  const keys = makeKeys();
  const guarded = await serve('--api-keys', keys.file, '--playground', 'open');
  const { page, close } = await open(browser, guarded.url);
  await page.getByText('This server needs a key').waitFor();
  await shot(page, 'key');
  assert.deepEqual(await faults(page), []);
  assert.equal(await page.evaluate(() => document.activeElement.type), 'password');
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await page.getByLabel('API key').fill(keys.key);
  await page.keyboard.press('Enter');
  await page.getByLabel('Model').waitFor();
  await askAboutPicture(page);
  assert.equal(await lastAnswer(page).innerText(), answer);
  await page.reload();
  await page.getByLabel('Model').waitFor();
  await close();
  await guarded.stop();
  keys.remove();
});

test('fits a phone', async () => {
  const { page, close } = await open(browser, server.url, { viewport: { width: 375, height: 700 }, reducedMotion: 'reduce' });
  await page.getByLabel('Model').waitFor();
  await askAboutPicture(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await shot(page, 'phone');
  assert.deepEqual(await faults(page), []);
  await close();
});
