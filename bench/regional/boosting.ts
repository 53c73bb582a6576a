/** LightGBM from PyPI as a peer: one model for all places, which knows where a patch is and reads the same history. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { toArray } from '../../src/async/index.js';
import { geohash } from '../../src/grid/index.js';
import type { Storage } from '../../src/storage/index.js';
import { readAcquisitions } from '../../src/training/acquisitions.js';
import { groupTilesByCell, trainingFiles } from '../../src/training/cells.js';
import { getModelSpec, type TrainResults } from '../../src/training/index.js';
import { labelImages } from '../../src/training/labelled-images.js';
import { makePatches, type Patches, type TrainValidationPatches } from '../../src/training/patches.js';
import { installPython } from '../support/python.js';

const SCRIPT = fileURLToPath(new URL('../../../bench/regional/boosting.py', import.meta.url));
/** Every how many pixels one is used, if the target is a map. Neighbours tell the same. */
const PIXEL_STEP = 7;

export const installBoosting = (log: (line: string) => void) =>
  installPython('lightgbm', ['lightgbm', 'numpy'], 'lightgbm', log);

/** The patches of the places of a region that have models, as their training has cut them. */
export async function readPlaces(
  storage: Storage,
  collection: string,
  { base }: TrainResults,
): Promise<Map<string, TrainValidationPatches>> {
  const spec = getModelSpec(base!.model);
  const tiles = await toArray(storage.catalogue.tiles.values());
  const cells = groupTilesByCell(tiles.filter((tile) => tile.collection === collection));
  const places = new Map<string, TrainValidationPatches>();
  for (const { geocode, holdOut } of base!.distributed!.places) {
    const files = trainingFiles(storage, spec, cells.find((cell) => cell.geocode === geocode)!);
    if ('skipped' in files) throw new Error(`${geocode}: ${files.skipped}`);
    const read = await readAcquisitions(files.dates);
    if ('skipped' in read) throw new Error(`${geocode}: ${read.skipped}`);
    const from = holdOut?.from === undefined ? undefined : { from: Date.parse(holdOut.from) };
    const made = makePatches(spec, labelImages(spec, read.dates, files.pairs), from, { use: 'all' });
    if (!('dataset' in made)) throw new Error(`${geocode}: ${made.skipped}`);
    places.set(geocode, made.dataset);
  }
  return places;
}

/**
 * Returns the validation error at each place. The features are the means and deviations of the inputs in a patch, or the inputs of a pixel
 * and their means in its patch if the target is a map, and the longitude and latitude of the place.
 */
export async function boostingErrors(
  python: string,
  folder: string,
  places: ReadonlyMap<string, TrainValidationPatches>,
  seed: number,
): Promise<Map<string, number>> {
  mkdirSync(folder, { recursive: true });
  const train: number[][] = [];
  const validation: number[][] = [];
  const counts: number[] = [];
  for (const [geocode, dataset] of places) {
    const { west, south } = geohash.bounds(geocode);
    const rows = (set: Patches) => rowsOf(set).map((row) => [west, south, ...row]);
    train.push(...rows(dataset.train));
    const scored = rows(dataset.validation);
    validation.push(...scored);
    counts.push(scored.length);
  }
  const about = { columns: train[0]!.length, validation: counts, seed };
  await writeFile(join(folder, 'about.json'), JSON.stringify(about));
  for (const [name, rows] of Object.entries({ train, validation }))
    await writeFile(join(folder, `${name}.f32`), new Uint8Array(Float32Array.from(rows.flat()).buffer));
  const child = spawn(python, [SCRIPT, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${SCRIPT} failed`);
  const errors = JSON.parse(printed) as number[];
  return new Map([...places.keys()].map((geocode, i) => [geocode, errors[i]!]));
}

/** Features and target of each patch, or of some pixels of each patch. */
function rowsOf({ count, size, inputBands, inputs, targets, targetMask }: Patches): number[][] {
  const pixels = size * size;
  const bands = Array.from({ length: inputBands }, (_, band) => band);
  const rows: number[][] = [];
  for (let n = 0; n < count; n++) {
    const at = (pixel: number, band: number) => inputs[(n * pixels + pixel) * inputBands + band]!;
    const means = bands.map((band) => {
      let sum = 0;
      for (let i = 0; i < pixels; i++) sum += at(i, band);
      return sum / pixels;
    });
    if (!targetMask) {
      const deviations = bands.map((band) => {
        let squares = 0;
        for (let i = 0; i < pixels; i++) squares += (at(i, band) - means[band]!) ** 2;
        return Math.sqrt(squares / pixels);
      });
      rows.push([...deviations, ...means, targets[n]!]);
      continue;
    }
    for (let i = 0; i < pixels; i += PIXEL_STEP)
      if (targetMask[n * pixels + i])
        rows.push([...bands.map((band) => at(i, band)), ...means, targets[n * pixels + i]!]);
  }
  return rows;
}
