// A server of ours and a page of it in a browser.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const require = createRequire(`${process.env.TRIPTYCH_BROWSER_HOME}/`);
const binary = process.env.TRIPTYCH ?? join(root, 'build/release/triptych');

/** Starts `triptych serve` with the demo model on a free port. */
export async function serve(...flags) {
  const server = spawn(binary, ['serve', join(root, 'models/demo'), '--port', '0', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines = createInterface({ input: server.stderr });
  const [line] = await once(lines, 'line');
  const url = /http:\/\/\S+/.exec(line)?.[0];
  if (!url) throw new Error(`the server said: ${line}`);
  return {
    url: `${url}/`,
    async stop() {
      server.kill('SIGTERM');
      const [code] = await once(server, 'exit');
      if (code !== 0) throw new Error(`the server ended with ${code}`);
    },
  };
}

/** A key file with one key in it, and the key. */
export function makeKeys() {
  const made = spawnSync(binary, ['key', 'tests'], { encoding: 'utf8' });
  const folder = mkdtempSync(join(tmpdir(), 'triptych-keys-'));
  const file = join(folder, 'keys');
  writeFileSync(file, `${made.stderr.trim().split('\n').at(-1)}\n`);
  return { key: made.stdout.trim(), file, remove: () => rmSync(folder, { recursive: true }) };
}

export function launch() {
  const { chromium } = require('playwright-core');
  return chromium.launch({
    executablePath: process.env.TRIPTYCH_CHROMIUM ?? '/usr/bin/chromium',
    // Chromium's sandbox does not start for the administrator, and its own services call home.
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** Opens a page that notes what it asked for and what it complained about. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1120, height: 800 }, ...options });
  const page = await context.newPage();
  const requests = [];
  const complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, requests, complaints, close: () => context.close() };
}
