import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createItemWriter, JsonBuffer } from '../../src/query/index.js';
import { type CollectionRecord, schemaOf, type TileRecord } from '../../src/storage/index.js';
import { TileSchemas } from '../../src/storage/tile-schema.js';
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
    warnings: fc.option(fc.array(text, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  })
  .map(({ some, warnings, ...rest }) =>
    tile({ ...some, ...rest, ...(warnings && { warnings }), id: rest.id || 'x' }),
  );

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

/** The records as a catalogue returns them: equal groups share a schema. */
function asStored(records: TileRecord[]): TileRecord[] {
  const layouts = new TileSchemas();
  return records.map((record) =>
    layouts.decode(record.id, JSON.parse(JSON.stringify(layouts.encode(record)))),
  );
}

/** The same record, for which no text is cached. */
const withoutSchema = (record: TileRecord): TileRecord => ({
  ...record,
  groups: structuredClone(record.groups),
});

function itemText(base: string, record: TileRecord, collection: CollectionRecord): string {
  const out = new JsonBuffer();
  createItemWriter(base, out)(record, collection);
  return out.take().toString();
}

const jsonNumber = (value: number) => (Number.isFinite(value) ? value + 0 : null);

test('an Item has the values of its tile, whether its common parts are cached or not', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(records, fc.nat(3)), { minLength: 1, maxLength: 4 }),
      fc.array(collections, { minLength: 1, maxLength: 2 }),
      bases,
      (some, of, base) => {
        // Some records have the groups of others, with other percentages.
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
          const text = itemText(base, record, collection);
          assert.equal(text, itemText(base, withoutSchema(record), collection));
          const item = JSON.parse(text);
          const { id, properties, assets, links } = item;
          assert.deepEqual(
            [id, item.collection, properties.scene, properties.version, properties.platform ?? null],
            [record.id, record.collection, record.scene, record.version, record.platform],
          );
          assert.deepEqual([properties.license, links[1].title], [collection.license, collection.title]);
          assert.deepEqual(
            [properties.model, properties.model_version],
            [record.model?.id, record.model?.version],
          );
          assert.equal(properties.pixel_coverage, jsonNumber(record.coverage));
          if (record.footprint.length > 0)
            assert.deepEqual(properties['proj:geometry'].coordinates, [
              record.footprint.map((point) => point.map(jsonNumber)),
            ]);
          const derived = links.filter(({ rel }: { rel: string }) => rel === 'derived_from');
          assert.equal(derived.length, record.derivedFrom.length + (record.model ? 1 : 0));
          // JSON keeps the last of several groups with equal names.
          const byName = new Map(record.groups.map((group) => [group.name, group]));
          for (const { name, width, height, bands } of byName.values()) {
            const asset = assets[name];
            assert.deepEqual(asset['proj:shape'], [height, width]);
            assert.deepEqual(
              asset['eo:bands'].map((band: { name: string }) => band.name),
              bands.map((band) => band.name),
            );
            if (asset['raster:bands'])
              assert.deepEqual(
                asset['raster:bands'].map((band: { valid_percent: number }) => band.valid_percent),
                bands.map(({ validPercent }) => jsonNumber(validPercent)),
              );
          }
        }
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

test('tiles of one schema share texts, but not percentages and URLs', () => {
  const [first, second] = asStored(
    [97.5, 100].map((validPercent) =>
      tile({
        id: `c_${validPercent}`,
        groups: [
          {
            name: '10m',
            file: '10m',
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
    for (const record of [first!, second!, first!]) {
      assert.equal(schemaOf(withoutSchema(record)), undefined);
      assert.equal(itemText(base, record, collection), itemText(base, withoutSchema(record), collection));
    }
});
