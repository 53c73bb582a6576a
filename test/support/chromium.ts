/** A real browser. Tests that need it are skipped if it is not installed. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type Page, chromium as program } from 'playwright-core';

/** Path of the program; undefined if it is not installed. */
export const chromium = (process.env['PATH'] ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

export const needsChromium = { skip: chromium ? false : 'no chromium on PATH' };

/** Waits that end, even on a machine that is busy with other things. */
const PATIENCE_MS = 120_000;

export function startBrowser(): Promise<Browser> {
  const quiet = ['background-networking', 'component-update', 'sync'].map((name) => `--disable-${name}`);
  return program.launch({
    executablePath: chromium!,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', ...quiet],
    timeout: PATIENCE_MS,
  });
}

/** Opens a page in a browser, without anything that other pages have stored, and closes it after `look`. */
export async function withPageOf(
  browser: Browser,
  width: number,
  look: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({ viewport: { width, height: 760 } });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await look(page);
  } finally {
    await context.close();
  }
}

/** Opens a page in a new browser and closes the browser after `look`. */
export async function withPage(width: number, look: (page: Page) => Promise<void>): Promise<void> {
  const browser = await startBrowser();
  try {
    await withPageOf(browser, width, look);
  } finally {
    await browser.close();
  }
}
