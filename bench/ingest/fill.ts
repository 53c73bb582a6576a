/**
 * Filling a cell of 512 x 512 pixels and four bands from ten dates: reading, choosing, splicing, encoding; no file is written.
 * CPU time of all threads; wall time on a shared machine says little.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillTile } from '../../src/derive/fill-tile.js';
import type { TileFiles } from '../../src/derive/tasks.js';
import { type CellGroup, encodeGroup, encodeMask, joinTile } from '../../src/ingest/index.js';
import { Mask } from '../../src/raster/index.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';

const SIZE = 512;
const DATES = 10;
const GEOCODE = '9q8yy';

export async function benchFill({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  try {
    const results: BenchResult[] = [];
    for (const share of [0.3, 0.6]) {
      const dates = Array.from({ length: DATES }, (_, date) => writeDate(folder, date, share));
      const [base, ...donors] = dates;
      const tile = { grid: 'geohash' as const, geocode: GEOCODE, metadata: {} };
      const times: number[] = [];
      let used = 0;
      for (let round = 0; round < (short ? 5 : 25); round++) {
        const targets = { coverage: 100, cloud: 0 };
        const { value: made, cpuSeconds } = await spend(() =>
          fillTile({ kind: 'fill', tile, base, donors, targets, dilate: 0 }),
        );
        times.push(1000 * cpuSeconds);
        used = made?.used.length ?? 0;
      }
      const milliseconds = median(times);
      log(
        `${100 * share} % cloud: ${milliseconds.toFixed(1)} CPU ms a cell, pixels of ${used} of ${DATES} dates`,
      );
      results.push(result(`fill, ${100 * share} % cloud`, 'cells/CPU s', 1000 / milliseconds));
    }
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A date as an ingest leaves it: smooth land with noise, and round clouds on a share of it. */
function writeDate(folder: string, date: number, share: number): TileFiles {
  let state = date + 1;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  const mask = new Uint8Array(SIZE * SIZE).fill(Mask.clear);
  let cloudy = 0;
  while (cloudy < share * mask.length) {
    const [x, y, radius] = [random() * SIZE, random() * SIZE, 10 + random() * 50];
    for (let row = Math.max(0, Math.ceil(y - radius)); row < Math.min(SIZE, y + radius); row++)
      for (let column = Math.max(0, Math.ceil(x - radius)); column < Math.min(SIZE, x + radius); column++) {
        const at = row * SIZE + column;
        if (mask[at] === Mask.cloud || Math.hypot(column - x, row - y) > radius) continue;
        mask[at] = Mask.cloud;
        cloudy++;
      }
  }
  const bands = [600, 800, 700, 3000].map((level, b) =>
    Uint16Array.from(mask, (code, i) => {
      const wave = Math.sin((i % SIZE) / (9 + b)) * Math.cos(i / SIZE / (7 + b)) * level * 0.3;
      return Math.round((code === Mask.cloud ? 6000 : level) + wave + random() * 50);
    }),
  );
  const cell: CellGroup = {
    grid: 'geohash',
    geocode: GEOCODE,
    width: SIZE,
    height: SIZE,
    name: '10m',
    role: 'data',
    resampling: 'bilinear',
    dataType: 'uint16',
    nodata: 0,
    colours: undefined,
    bands: ['blue', 'green', 'red', 'nir'].map((name) => ({
      name,
      commonName: name,
      scale: 0.0001,
      offset: 0,
    })),
    metadata: {},
  };
  const images = [
    encodeGroup(cell, { bands, valid: bands.map(() => null) }).image,
    encodeMask(cell, mask).image,
  ];
  const { files, groups } = joinTile(images);
  const path = join(folder, `${share}-${date}.tif`);
  writeFileSync(path, files[0]!.bytes);
  const [data, codes] = groups as [(typeof groups)[number], (typeof groups)[number]];
  const placed = [
    { ...data, path, start: 0 },
    { ...codes, path, start: data.bytes },
  ];
  return { grid: 'geohash', geocode: GEOCODE, groups: placed };
}
