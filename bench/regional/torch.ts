/** PyTorch as a peer: the same base and the same adaptation on the same patches. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ModelSpec } from '../../src/training/models/spec.js';
import { makePatches } from '../../src/training/patches.js';
import { writeTorchPlace } from '../engine/torch.js';
import type { RegionPlace } from './questions.js';

const SCRIPT = fileURLToPath(new URL('../../../bench/regional/torch_region.py', import.meta.url));

/** Returns the errors of the base and of the adapted model at each place. Only for `ndvi`. */
export async function torchErrors(
  python: string,
  folder: string,
  spec: ModelSpec,
  places: RegionPlace[],
  { epochs, seed }: { epochs: number; seed: number },
): Promise<Record<'base' | 'adapted', Map<string, number>>> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [i, { geocode, images, holdOut }] of places.entries()) {
    const made = makePatches(
      spec,
      images,
      holdOut.from === undefined ? undefined : { from: Date.parse(holdOut.from) },
    );
    if (!('dataset' in made)) throw new Error(`${geocode}: ${made.skipped}`);
    const { maxPatches } = spec;
    await writeTorchPlace(join(folder, `place-${String(i).padStart(3, '0')}`), spec, made.dataset, {
      ...{ epochs, seed, maxPatches },
    });
  }
  const env = { ...process.env, OMP_NUM_THREADS: '1', MKL_NUM_THREADS: '1' };
  const child = spawn(python, [SCRIPT, folder], { stdio: ['ignore', 'pipe', 'inherit'], env });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${SCRIPT} failed`);
  const errors = JSON.parse(printed) as { base: number; adapted: number }[];
  const byPlace = (name: 'base' | 'adapted') =>
    new Map(places.map(({ geocode }, i) => [geocode, errors[i]![name]]));
  return { base: byPlace('base'), adapted: byPlace('adapted') };
}
