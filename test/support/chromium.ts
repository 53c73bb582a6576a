/** A real browser. Tests that need it are skipped where it is not installed. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Path of the program; undefined where there is none. */
export const chromium = (process.env['PATH'] ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

export const needsChromium = { skip: chromium ? false : 'no chromium on PATH' };
