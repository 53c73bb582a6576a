/** Preloaded by servers: a checkpoint of a training is due after half a second, because the clock of training processes is faster. */
import { basename } from 'node:path';

const FACTOR = 10;

const script = basename(process.argv[1] ?? '');
if (script === 'train-cell-worker.js' || script === 'rank-worker.js') {
  const now = performance.now.bind(performance);
  performance.now = () => FACTOR * now();
}
