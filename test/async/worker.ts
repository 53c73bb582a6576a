/** The worker thread of worker-pool.test.ts. */
import { threadId } from 'node:worker_threads';
import { handleTasks } from '../../src/async/index.js';
import { TilewrightError } from '../../src/errors.js';
import { readRaster } from '../../src/raster/index.js';

export type Task =
  | { kind: 'thread'; milliseconds: number }
  | { kind: 'double'; values: Float64Array }
  | { kind: 'known' }
  | { kind: 'plain' }
  | { kind: 'exit' }
  | { kind: 'pixels'; path: string }
  | { kind: 'endless' }
  | { kind: 'blocked'; milliseconds: number }
  | { kind: 'memory'; bytes: number }
  | { kind: 'patient' }
  | { kind: 'unsendable' };

export type Result = number | Float64Array | (() => void);

/** WebAssembly memory that is kept, as by libraries. */
const kept: WebAssembly.Memory[] = [];

handleTasks<Task, Result>(
  async (task, signal) => {
    switch (task.kind) {
      case 'thread':
        await new Promise((done) => setTimeout(done, task.milliseconds));
        return threadId;
      case 'double':
        return task.values.map((value) => value * 2);
      case 'known':
        throw new TilewrightError('TW_RASTER_CORRUPT', 422, 'a.tif is corrupt', {
          cause: new RangeError('inner'),
        });
      case 'plain':
        throw new TypeError('not a number');
      case 'exit':
        process.exit(3);
        break;
      case 'pixels':
        return (await readRaster(task.path)).bands[0]!.length;
      case 'endless':
        for (;;);
      case 'blocked':
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, task.milliseconds);
        return threadId;
      case 'memory':
        kept.push(new WebAssembly.Memory({ initial: task.bytes / 65_536 }));
        return threadId;
      case 'patient':
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error('aborted'))),
        );
      case 'unsendable':
        return () => {};
    }
    return 0;
  },
  (result) => (result instanceof Float64Array ? [result.buffer as ArrayBuffer] : []),
);
