/** Random tiles that filters often match: few cells, few times, few names. */
import fc from 'fast-check';
import { geohash, gridByName, quadtile } from '../../src/grid/index.js';
import type { GroupRecord, TileRecord, TileSource } from '../../src/storage/index.js';

export const tileSources: TileSource[] = ['raw', 'split', 'filled', 'coalesced', 'predicted', 'cloud-free'];
export const day = 86_400_000;
export const base = Date.UTC(2018, 6, 1);

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
    record.id = `${record.collection}_${record.scene}_${gridByName(record.grid).idPrefix}${record.geocode}`;
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

export const times = fc.integer({ min: 0, max: 30 }).map((days) => base + days * day);
export const percent = fc.oneof(
  fc.constantFrom(0, 20.1, 33.3, 99.9, 100),
  fc.double({ min: 0, max: 100, noNaN: true }),
);

/** A spectrum of 20 good bands between two wavelengths, with a bad band before and after them, nm. */
export function spectrum(from: number, to: number): GroupRecord[] {
  const bands = Array.from({ length: 22 }, (_, i) => ({
    name: `b${i + 1}`,
    scale: 1,
    offset: 0,
    validPercent: 100,
    wavelength: from + ((to - from) * (i - 1)) / 19,
    ...((i === 0 || i === 21) && { good: false as const }),
  }));
  const file = { width: 4, height: 4, bytes: 10, crc32: 1, nodata: null };
  return [{ name: '30m', file: '30m', role: 'data', dataType: 'int16', ...file, bands }];
}

/** Ends of the spectra, micrometres, and other numbers. */
export const wavelengths = fc.constantFrom(0.4, 0.45, 0.9, 1, 2.5, 2.6);
const groups = fc.constantFrom([], [], spectrum(400, 1000), spectrum(900, 2500), spectrum(400, 2500));

/** Parts with data: all, scattered ones, one, those of a straight edge, and two opposite corners. */
export const dataParts = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  {
    weight: 4,
    arbitrary: fc
      .oneof(
        fc.bigInt({ min: 1n, max: 2n ** 64n - 2n }),
        fc.integer({ min: 0, max: 63 }).map((bit) => 1n << BigInt(bit)),
        fc
          .tuple(
            fc.integer({ min: -8, max: 8 }),
            fc.integer({ min: -8, max: 8 }),
            fc.integer({ min: 0, max: 15 }),
          )
          .map(([a, b, c]) => bitsWhere((column, row) => a * (column - 3.5) + b * (row - 3.5) > c - 8)),
        fc.constantFrom(0xc0c0000000000303n, 0x8000000000000001n, 0xff818181818181ffn),
      )
      .map((bits) => bits.toString(16).padStart(16, '0'))
      .filter((text) => !/^(0+|f+)$/.test(text))
      .map((text) => ({ dataParts: text })),
  },
);

function bitsWhere(isSet: (column: number, row: number) => boolean): bigint {
  const digits = Array.from({ length: 64 }, (_, i) => (isSet(i % 8, Math.floor(i / 8)) ? '1' : '0'));
  return BigInt(`0b${digits.join('')}`);
}

export const tiles = fc
  .record({
    cell: cells,
    parts: dataParts,
    collection: fc.constantFrom('a', 'b', 'a_b'),
    scene: fc.constantFrom('s1', 's2', 's3', 's4', 's5', 's6', 's7', 's8', 's9'),
    source: fc.constantFrom(...tileSources),
    start: times,
    length: fc.constantFrom(0, 0, day, 8 * day),
    platform: fc.constantFrom(null, 'sentinel-2a', 'landsat-8', 'Straße', 'KØBENHAVN'),
    coverage: percent,
    cloudCover: fc.option(percent),
    createdAt: times,
    groups,
  })
  .map(({ cell, parts, length, ...rest }) => tile({ ...cell, ...parts, ...rest, end: rest.start + length }));

/** The order of a search: newest first, then by collection and id. */
export function newestFirst(a: TileRecord, b: TileRecord): number {
  const text = (p: string, q: string) => (p < q ? -1 : p > q ? 1 : 0);
  return b.start - a.start || text(a.collection, b.collection) || text(a.id, b.id);
}
