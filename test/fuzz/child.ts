/** Runs inputs [first, end) of one target: `node child.js TARGET SEED FIRST END PROGRESS-FILE`. Prints each finding as a line of JSON. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TilewrightError } from '../../src/errors.js';
import { randomOf } from './mutate.js';
import { TARGETS, type Target, type TargetName } from './targets.js';

/** An input that takes longer is a finding. */
const SLOW_MS = 5_000;
/** Memory growth that is allowed between the first and the last tenth of the inputs. */
const GROWTH_BYTES = 64e6;

const [name = '', seed = '', first = '', end = '', progressPath = ''] = process.argv.slice(2);
const progress = openSync(progressPath, 'w');
const scratch = mkdtempSync(join(tmpdir(), 'tilewright-fuzz-'));
const folder = join(scratch, 'input');
mkdirSync(folder);
const target: Target = await TARGETS[name as TargetName](join(scratch, 'target'));

const say = (finding: object) => console.log(JSON.stringify({ target: name, ...finding }));
const position = Buffer.alloc(8);
let early: number | undefined;

for (let index = Number(first); index < Number(end); index++) {
  // Written before the input is read, so that the parent knows which one hangs or crashes.
  position.writeDoubleLE(index);
  writeSync(progress, position, 0, 8, 0);
  const started = performance.now();
  try {
    await target.run(randomOf(seedOf(index)), folder);
  } catch (error) {
    if (isLimit(error)) console.log(JSON.stringify({ limited: index }));
    else if (!(error instanceof TilewrightError))
      say({ index, kind: 'error', detail: (error as Error).stack ?? String(error) });
  }
  const took = performance.now() - started;
  if (took > SLOW_MS) say({ index, kind: 'slow', detail: `${Math.round(took)} ms` });
  for (const left of readdirSync(folder)) rmSync(join(folder, left), { recursive: true, force: true });
  if (index - Number(first) === Math.floor((Number(end) - Number(first)) / 10)) early = kept();
}
const growth = kept() - (early ?? 0);
if (early !== undefined && growth > GROWTH_BYTES)
  say({ index: Number(first), kind: 'memory', detail: `${growth} bytes stayed` });
await target.close?.();
rmSync(scratch, { recursive: true, force: true });
process.exit(0);

/** True if a time limit ended the thread or the process that read the input. */
function isLimit(error: unknown): boolean {
  const isStuck = error instanceof TilewrightError && error.code === 'TW_RASTER_WORKER_STUCK';
  return isStuck || (error as Error).name === 'TimeoutError';
}

/** The same input for the same seed and number, whichever run it is part of. */
function seedOf(index: number): number {
  return createHash('sha256').update(`${seed} ${name} ${index}`).digest().readUInt32LE(0);
}

function kept(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
