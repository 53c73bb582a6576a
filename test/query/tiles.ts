/** Random tiles and filters that meet often: few places, few times, few names. */
import fc from 'fast-check';
import { type Bbox, cellBbox, geohash, gridByName, quadtile } from '../../src/geocode/index.js';
import type { TileFilter } from '../../src/query/index.js';
import type { TileRecord, TileSource } from '../../src/storage/index.js';

export const tileSources: TileSource[] = ['raw', 'split', 'filled', 'coalesced', 'predicted', 'cloud-free'];
const day = 86_400_000;
const base = Date.UTC(2018, 6, 1);

export function tile(part: Partial<TileRecord>): TileRecord {
  const record: TileRecord = {
    id: '',
    collection: 'a',
    scene: 's',
    grid: 'geohash',
    geocode: '9q8yy',
    version: 'v',
    source: 'raw',
    start: base,
    end: base,
    platform: null,
    coverage: 100,
    cloudCover: null,
    groups: [],
    footprint: [],
    derivedFrom: [],
    createdAt: base,
    ...part,
  };
  if (record.id === '') {
    record.id = `${record.collection}_${record.scene}_${gridByName(record.grid).letter}${record.geocode}`;
  }
  return record;
}

const places: fc.Arbitrary<[lon: number, lat: number]> = fc.oneof(
  fc.tuple(fc.integer({ min: -180, max: 180 }), fc.integer({ min: -85, max: 85 })),
  fc.tuple(fc.constantFrom(0, 45, -45, 179.9, -180, 11.25), fc.constantFrom(0, 45, -45, 5.625)),
);

export const cells = fc
  .record({
    grid: fc.constantFrom(geohash, quadtile),
    place: places,
    precision: fc.integer({ min: 1, max: 6 }),
  })
  .map(({ grid, place: [lon, lat], precision }) => ({
    grid: grid.name,
    geocode: grid.encode(...grid.fromLonLat(lon, lat), precision),
  }));

const times = fc.integer({ min: 0, max: 30 }).map((days) => base + days * day);
const percent = fc.oneof(
  fc.constantFrom(0, 20.1, 33.3, 99.9, 100),
  fc.double({ min: 0, max: 100, noNaN: true }),
);

export const tiles = fc
  .record({
    cell: cells,
    collection: fc.constantFrom('a', 'b', 'a_b'),
    scene: fc.constantFrom('s1', 's2', 's3', 's4', 's5', 's6', 's7', 's8', 's9'),
    source: fc.constantFrom(...tileSources),
    start: times,
    length: fc.constantFrom(0, 0, day, 8 * day),
    platform: fc.constantFrom(null, 'sentinel-2a', 'landsat-8'),
    coverage: percent,
    cloudCover: fc.option(percent),
  })
  .map(({ cell, length, ...rest }) => tile({ ...cell, ...rest, end: rest.start + length }));

const bboxes = fc.oneof(
  fc.tuple(places, places).map(([[w, s], [e, n]]): Bbox => [w, Math.min(s, n), e, Math.max(s, n)]),
  cells.map(({ grid, geocode }) => cellBbox(gridByName(grid), geocode)),
  fc.constant<Bbox>([-180, -90, 180, 90]),
);

const optional = <T>(values: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values });

export const filters: fc.Arbitrary<TileFilter> = fc
  .record({
    collections: optional(fc.subarray(['a', 'b', 'a_b', 'unknown'])),
    where: fc.oneof(
      fc.constant({}),
      bboxes.map((bbox) => ({ bbox })),
      fc.record({
        geocode: fc.oneof(
          cells.map((cell) => cell.geocode),
          fc.constantFrom('not', ''),
        ),
        recurse: fc.boolean(),
      }),
      fc.record({
        geocode: cells.map((cell) => cell.geocode.slice(0, 2)),
        recurse: fc.constant(true),
        bbox: bboxes,
      }),
    ),
    start: optional(times),
    end: optional(times),
    minCloud: optional(percent),
    maxCloud: optional(percent),
    minCoverage: optional(percent),
    source: optional(fc.constantFrom(...tileSources)),
    platform: optional(fc.constantFrom('sentinel-2a', 'unknown')),
  })
  .map(({ where, ...rest }) => ({ ...rest, ...where }));

/** The order of a search: newest first, then by collection and id. */
export function newestFirst(a: TileRecord, b: TileRecord): number {
  const text = (p: string, q: string) => (p < q ? -1 : p > q ? 1 : 0);
  return b.start - a.start || text(a.collection, b.collection) || text(a.id, b.id);
}
