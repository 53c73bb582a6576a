/** The reference of the API: its files, and what it does in a real browser. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { needsChromium, withPage } from '../support/chromium.js';
import { testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { proxyTo } from './path-proxy.js';

test('every file of the page is served without a token, under a policy that allows no other host', async (t) => {
  const data = join(await tempFolder(t), 'data');
  const node = await openNode({ data, memory: 128e6, cores: 1, readToken: 'secret' });
  atEnd(t, () => node.close());
  const page = await node.server.inject('/docs');
  assert.match(String(page.headers['content-type']), /^text\/html/);
  assert.doesNotMatch(page.body, /https?:|<style|<script>|style=/);
  const files = [...page.body.matchAll(/(?:href|src)="(docs\/[^"]+)"/g)].map(([, path]) => `/${path}`);
  assert.equal(files.length, 4);
  for (const path of ['/docs', ...files]) {
    const answer = await node.server.inject(path);
    assert.equal(answer.statusCode, 200, path);
    const policy = String(answer.headers['content-security-policy']);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.doesNotMatch(policy, /http|\*|unsafe/);
    const { etag } = answer.headers;
    const again = await node.server.inject({ url: path, headers: { 'if-none-match': etag } });
    assert.equal(again.statusCode, 304, path);
  }
  // The document itself describes what the server holds.
  assert.equal((await node.server.inject('/openapi.json')).statusCode, 401);
});

/** Opens the reference in a browser. Fails if a script fails, something is written to the console, or another host is requested. */
async function inBrowser(url: string, look: (page: Page) => Promise<void>, expected = /^$/): Promise<void> {
  await withPage(1200, async (page) => {
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && origin !== new URL(url).origin)
        complaints.push(`requests ${request.url()}`);
    });
    await page.goto(`${url}/docs`);
    await look(page);
    assert.deepEqual(
      complaints.filter((complaint) => !expected.test(complaint)),
      [],
    );
  });
}

/** Executes an operation on the page and returns the status and the address that the page shows. */
async function execute(page: Page, operation: string): Promise<string> {
  const block = page.locator(`[id$="-${operation}"]`);
  await block.locator('.opblock-summary-control').first().click();
  await block.locator('.try-out__btn').click();
  await block.locator('.btn.execute').click();
  const status = await block.locator('.live-responses-table .response-col_status').last().textContent();
  const address = await block.locator('.request-url pre').textContent();
  return `${status?.trim()} of ${address}`;
}

const operations = (page: Page) => page.locator('.opblock').count();

test('a browser shows every operation and executes one', needsChromium, async (t) => {
  const node = await testNode(t, join(await tempFolder(t), 'data'), { cores: 1 });
  const { paths } = (await node.server.inject('/openapi.json')).json();
  const described = Object.values(paths as Record<string, object>).flatMap(Object.keys).length;
  const url = await node.listen('127.0.0.1', 0);
  await inBrowser(url, async (page) => {
    await page.waitForSelector('.opblock');
    assert.equal(await operations(page), described);
    assert.equal(await execute(page, 'getHealth'), `200 of ${url}/health`);
  });
});

test(
  'under a path of a proxy and with a token for reads, the page asks for the token and sends it',
  needsChromium,
  async (t) => {
    let target = '';
    const url = await proxyTo(t, () => target, '/under/tiles');
    const data = join(await tempFolder(t), 'data');
    const access = { publicUrl: url, readToken: 'secret' };
    const node = await openNode({ data, memory: 128e6, cores: 1, ...access });
    atEnd(t, () => node.close());
    target = await node.listen('127.0.0.1', 0);
    await inBrowser(
      url,
      async (page) => {
        await page.waitForSelector('#access:not([hidden])');
        assert.equal(await operations(page), 0);
        await page.fill('#token', 'wrong');
        await page.click('#access button');
        await page.waitForFunction(() =>
          /another one/.test(document.querySelector('#message')!.textContent!),
        );
        await page.fill('#token', 'secret');
        await page.click('#access button');
        await page.waitForSelector('.opblock');
        assert.equal(await page.locator('#access').isVisible(), false);
        assert.equal(await execute(page, 'listCollections'), `200 of ${url}/collections`);
      },
      /401 \(Unauthorized\)/,
    );
  },
);
