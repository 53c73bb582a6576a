/**
 * A thread of worker-pool.test.ts that takes a while to load, and writes the file SLOW_WORKER_MARK when it has; without one it never does.
 */
import { writeFileSync } from 'node:fs';
import { setInterval, setTimeout } from 'node:timers/promises';
import { handleTasks } from '../../src/async/index.js';

const mark = process.env.SLOW_WORKER_MARK;
if (mark === undefined) for await (const _ of setInterval(1000));
await setTimeout(300);
writeFileSync(mark!, '');
handleTasks(() => new Promise(() => {}));
