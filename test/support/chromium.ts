/** A real browser. Tests that need it are skipped if it is not installed. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Page, chromium as program } from 'playwright-core';

/** Path of the program; undefined if it is not installed. */
export const chromium = (process.env['PATH'] ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

export const needsChromium = { skip: chromium ? false : 'no chromium on PATH' };

/** Waits that end, even on a machine that is busy with other things. */
const PATIENCE_MS = 120_000;

/** Opens a page in a new browser and closes the browser after `look`. */
export async function withPage(width: number, look: (page: Page) => Promise<void>): Promise<void> {
  const profile = await mkdtemp(join(tmpdir(), 'tilewright-test-'));
  const quiet = ['background-networking', 'component-update', 'sync'].map((name) => `--disable-${name}`);
  const context = await program.launchPersistentContext(profile, {
    executablePath: chromium!,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', ...quiet],
    viewport: { width, height: 760 },
    timeout: PATIENCE_MS,
  });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await look(page);
  } finally {
    await context.close();
    // The processes of the browser may still write for a moment.
    await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
