import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.js';

const CHUNK = Buffer.alloc(64 * 1024);
/** Interval of the checks for free space, ms. */
const REFILL = 100;

export const fullDisk: Fault = {
  name: 'full-disk',
  what: 'the disk of a node is full for LevelDB and files; then there is room again, and the node is restarted',
  diskMegabytes: 128,
  impossible: () => (process.getuid?.() === 0 ? undefined : 'only root may mount a small disk'),
  async begin({ settings }, { data, server, name }) {
    const ballast = join(data, 'ballast');
    const ending = new AbortController();
    const filling = (async () => {
      while (!ending.signal.aborted)
        try {
          await appendFile(ballast, CHUNK);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          await sleep(REFILL);
        }
    })();
    return async () => {
      ending.abort();
      await filling;
      await rm(ballast, { force: true });
      settings.history.note(`the disk of ${name} has room again`);
      // docs/reference/errors.md asks for it: a catalogue after a failed write accepts no further writes.
      await server.stop('SIGTERM');
      server.start();
    };
  },
};
