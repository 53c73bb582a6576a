/** A thread of worker-pool.test.ts that takes a while to load, and writes the file SLOW_WORKER_MARK when it has. */
import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { serveTasks } from '../../src/raster/index.js';

await setTimeout(300);
writeFileSync(process.env.SLOW_WORKER_MARK!, '');
serveTasks(() => new Promise(() => {}));
