/** Records of made-up tiles: cells of precision 5 in some cells of precision 3, each with some dates. */
import { type Grid, gridByName } from '../../src/grid/index.js';
import type { TileRecord } from '../../src/storage/index.js';

export const DAY_MS = 86_400_000;
export const MONTH = 30 * DAY_MS;
export const FIRST_DAY = Date.UTC(2018, 0, 1);

export interface Tiles {
  name: string;
  regions: number;
  cellsOfRegion: number;
  dates: number;
  daysBetween: number;
}

/** The same tiles in every run, date by date, without files. `round` distinguishes later tiles. */
export function* records(
  { regions, cellsOfRegion, dates, daysBetween }: Tiles,
  round = 0,
): Generator<TileRecord> {
  const grid = gridByName('geohash');
  const random = randomNumbers(42);
  for (let date = 0; date < dates; date++) {
    for (let region = 0; region < regions; region++) {
      const start = FIRST_DAY + (date + round * dates) * daysBetween * DAY_MS + region * 1000;
      const stamp = new Date(start).toISOString().replace(/[-:]|\.\d+Z/g, '');
      const scene = `S2A_${stamp}_L2A_T${10 + (region % 50)}SEG_R${100 + region}`;
      for (const geocode of cellsOf(grid, region, cellsOfRegion)) {
        const unknown = random() < 0.05;
        yield {
          id: `sentinel-2-l2a_${scene}_g${geocode}`,
          collection: 'sentinel-2-l2a',
          scene,
          grid: 'geohash',
          geocode,
          version: '',
          source: 'raw',
          start,
          end: start,
          platform: region % 2 ? 'sentinel-2a' : 'sentinel-2b',
          coverage: random() < 0.7 ? 100 : 100 * random(),
          cloudCover: unknown ? null : 100 * random() ** 2,
          groups: [],
          footprint: [],
          derivedFrom: [],
          createdAt: start + DAY_MS,
        };
      }
    }
  }
}

/** Key of the cell of precision 3 in which the cells of a region begin. */
export const regionKey = (region: number) => ((region * 127) % 32768) * 32 ** 6;

export function cellsOf(grid: Grid, region: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => grid.geocode(regionKey(region) + i * 32 ** 4, 5));
}

/** The same numbers from 0 to 1 for a seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
