/** LightGBM from PyPI as a peer: one model for all places, which knows where and when a patch is. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { geohash } from '../../src/grid/index.js';
import type { LabelledImage } from '../../src/training/labelled-images.js';
import type { ModelSpec } from '../../src/training/models/spec.js';
import { makePatches, type Patches } from '../../src/training/patches.js';
import { installPython } from '../support/python.js';
import type { RegionPlace } from './questions.js';

const SCRIPT = fileURLToPath(new URL('../../../bench/regional/boosting.py', import.meta.url));
const MS_PER_DAY = 86_400_000;
/** Every how many pixels one is used, if the target is a map. Neighbours tell the same. */
const PIXEL_STEP = 7;

export const installBoosting = (log: (line: string) => void) =>
  installPython('lightgbm', ['lightgbm', 'numpy'], 'lightgbm', log);

/**
 * Returns the validation error at each place. The features are the means and deviations of the bands of a patch, or the bands of a pixel
 * and the means of its patch if the target is a map, then longitude, latitude and date.
 */
export async function boostingErrors(
  python: string,
  folder: string,
  spec: ModelSpec,
  places: RegionPlace[],
  seed: number,
): Promise<Map<string, number>> {
  mkdirSync(folder, { recursive: true });
  const train: number[][] = [];
  const validation: number[][] = [];
  const counts: number[] = [];
  for (const place of places) {
    const made = makePatches(
      spec,
      located(place),
      place.holdOut.from === undefined ? undefined : { from: Date.parse(place.holdOut.from) },
    );
    if (!('dataset' in made)) throw new Error(`${place.geocode}: ${made.skipped}`);
    const rows = rowsOf(made.dataset.validation);
    for (const row of rowsOf(made.dataset.train)) train.push(row);
    for (const row of rows) validation.push(row);
    counts.push(rows.length);
  }
  const about = { columns: train[0]!.length, validation: counts, seed };
  await writeFile(join(folder, 'about.json'), JSON.stringify(about));
  for (const [name, rows] of Object.entries({ train, validation }))
    await writeFile(join(folder, `${name}.f32`), new Uint8Array(Float32Array.from(rows.flat()).buffer));
  const child = spawn(python, [SCRIPT, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${SCRIPT} failed`);
  const errors = JSON.parse(printed) as number[];
  return new Map(places.map(({ geocode }, i) => [geocode, errors[i]!]));
}

/** Appends planes with the longitude, latitude and day of each pixel. The patches are the same, because they depend on masks only. */
function located({ geocode, images }: RegionPlace): LabelledImage[] {
  const { west, south, east, north } = geohash.bounds(geocode);
  return images.map((image) => {
    const { width, height, time } = image;
    const plane = (value: (column: number, row: number) => number) =>
      Float32Array.from({ length: width * height }, (_, i) => value(i % width, Math.floor(i / width)));
    const inputs = [
      ...image.inputs,
      plane((column) => west + ((column + 0.5) / width) * (east - west)),
      plane((_, row) => north - ((row + 0.5) / height) * (north - south)),
      plane(() => time / MS_PER_DAY),
    ];
    return { ...image, inputs } as LabelledImage;
  });
}

const LOCATION_PLANES = 3;

function rowsOf({ count, size, inputBands, inputs, targets, targetMask }: Patches): number[][] {
  const pixels = size * size;
  const rows: number[][] = [];
  for (let n = 0; n < count; n++) {
    const at = (pixel: number, band: number) => inputs[(n * pixels + pixel) * inputBands + band]!;
    const bands = Array.from({ length: inputBands }, (_, band) => band);
    const means = bands.map((band) => {
      let sum = 0;
      for (let i = 0; i < pixels; i++) sum += at(i, band);
      return sum / pixels;
    });
    const seen = bands.slice(0, -LOCATION_PLANES);
    if (!targetMask) {
      const deviations = seen.map((band) => {
        let squares = 0;
        for (let i = 0; i < pixels; i++) squares += (at(i, band) - means[band]!) ** 2;
        return Math.sqrt(squares / pixels);
      });
      rows.push([...deviations, ...means, targets[n]!]);
      continue;
    }
    for (let i = 0; i < pixels; i += PIXEL_STEP)
      if (targetMask[n * pixels + i])
        rows.push([
          ...bands.map((band) => at(i, band)),
          ...seen.map((band) => means[band]!),
          targets[n * pixels + i]!,
        ]);
  }
  return rows;
}
