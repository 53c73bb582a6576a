import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createItemWriter, JsonBuffer, toStacItem } from '../../src/query/index.js';
import { type CollectionRecord, schemaOf, type TileRecord } from '../../src/storage/index.js';
import { TileSchemas } from '../../src/storage/records/tile-schema.js';
import { groupLists } from '../support/groups.js';
import { tile, tiles } from './tiles.js';

const text = fc.oneof(
  fc.constantFrom('Sentinel-2 L2A', 'Straße "x"\\', '\u0000\n\u2028', 'データ', '😀', '[year]'),
  fc.string({ unit: 'binary' }),
);
const real = fc.oneof(fc.constantFrom(0, -0, 0.1, 100, -122.3), fc.double());

const records: fc.Arbitrary<TileRecord> = fc
  .record({
    some: tiles,
    id: text,
    scene: text,
    version: text,
    platform: fc.option(text),
    groups: groupLists,
    footprint: fc.array(fc.tuple(real, real), { maxLength: 5 }),
    derivedFrom: fc.array(text, { maxLength: 3 }),
    model: fc.option(fc.record({ id: text, version: text }), { nil: undefined }),
    coverage: real,
    cloudCover: fc.option(real),
  })
  .map(({ some, ...rest }) => tile({ ...some, ...rest, id: rest.id || 'x' }));

const collections: fc.Arbitrary<CollectionRecord> = fc
  .record({
    title: text,
    license: text,
    licenseUrl: fc.option(text, { nil: undefined }),
    attribution: fc.option(text, { nil: undefined }),
  })
  .map(({ licenseUrl, attribution, ...rest }) => ({
    ...rest,
    ...(licenseUrl !== undefined && { licenseUrl }),
    ...(attribution !== undefined && { attribution }),
    id: '',
    grid: 'geohash',
    precision: 5,
    createdAt: 0,
  }));

const bases = fc.constantFrom(
  'http://h',
  'http://localhost:8080/',
  'https://h/a "path"/ü/',
  'https://h/v1//',
);

/** As they are read from a catalogue: those that are alike share a layout. */
function asStored(records: TileRecord[]): TileRecord[] {
  const layouts = new TileSchemas();
  return records.map((record) =>
    layouts.decode(record.id, JSON.parse(JSON.stringify(layouts.encode(record)))),
  );
}

function itemText(base: string, record: TileRecord, collection: CollectionRecord): string {
  const out = new JsonBuffer();
  createItemWriter(base, out)(record, collection);
  return out.take().toString();
}

test('the text of any Item says what its object says', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(records, fc.nat(3)), { minLength: 1, maxLength: 4 }),
      fc.array(collections, { minLength: 1, maxLength: 2 }),
      bases,
      (some, of, base) => {
        // Some have the groups of others, with percentages of their own.
        const fresh = some.map(([record, like], i) => ({
          ...record,
          groups: some[like % some.length]![0].groups.map((group) => ({
            ...group,
            width: group.width + i,
            bands: group.bands.map((band) => ({ ...band, validPercent: band.validPercent + (i % 2) })),
          })),
        }));
        for (const [i, record] of [...fresh, ...asStored(fresh)].entries()) {
          const collection = { ...of[i % of.length]!, id: record.collection };
          const expected = JSON.parse(JSON.stringify(toStacItem(record, collection, base)));
          assert.deepEqual(JSON.parse(itemText(base, record, collection)), expected);
        }
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

test('tiles of one layout are written from one text, whatever their percentages and addresses', () => {
  const [first, second] = asStored(
    [97.5, 100].map((validPercent) =>
      tile({
        id: `c_${validPercent}`,
        groups: [
          {
            name: '10m',
            role: 'data',
            dataType: 'float32',
            width: 10,
            height: 20,
            nodata: null,
            bands: ['B01', 'B02'].map((name) => ({ name, scale: 1, offset: 0, validPercent })),
            bytes: 1,
            crc32: 1,
          },
        ],
      }),
    ),
  );
  assert.ok(schemaOf(first!) && schemaOf(first!) === schemaOf(second!));
  const collection = {
    id: 'a',
    title: 't',
    license: 'CC0-1.0',
    grid: 'geohash',
    precision: 5,
    createdAt: 0,
  } as const;
  for (const base of ['http://one', 'http://two'])
    for (const record of [first!, second!, first!])
      assert.deepEqual(
        JSON.parse(itemText(base, record, collection)),
        JSON.parse(JSON.stringify(toStacItem(record, collection, base))),
      );
});
