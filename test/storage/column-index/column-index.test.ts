import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { WHOLE_INDEX } from '../../../src/dht/index.js';
import { geohash, gridByName } from '../../../src/grid/index.js';
import { collectionSummaries } from '../../../src/query/stac/collections.js';
import { ColumnIndex, type TileRecord } from '../../../src/storage/index.js';
import { newestFirst, tile, tiles } from '../../query/tiles.js';

const all = () => () => true;
const rangeOf = (geocode: string) => {
  const { key, span } = geohash.key(geocode);
  return { grid: 'geohash' as const, from: key, to: key + span };
};

/** The expected content of the index, in a map. */
function assertSame(index: ColumnIndex, expected: Map<string, TileRecord>): void {
  const records = [...expected.values()].sort(newestFirst);
  const ids = records.map((record) => record.id);
  assert.equal(index.size, expected.size);
  assert.deepEqual(index.query({ where: all }), { ids, matched: ids.length });
  const ranges = [rangeOf('s'), rangeOf('s0'), rangeOf('9')];
  const inRanges = records.filter((record) => record.grid === 'geohash' && /^[s9]/.test(record.geocode));
  assert.deepEqual(
    index.query({ where: all, ranges }).ids,
    inRanges.map((record) => record.id),
  );
}

test('the index follows any changes', () => {
  const change = fc.oneof(
    fc.record({ add: fc.array(tiles, { maxLength: 30 }) }),
    fc.record({ remove: fc.array(fc.nat(1000), { maxLength: 10 }) }),
  );
  fc.assert(
    fc.property(
      fc.array(tiles, { maxLength: 60 }),
      fc.array(change, { maxLength: 12 }),
      (loaded, changes) => {
        const index = new ColumnIndex();
        const expected = new Map<string, TileRecord>();
        index.load(loaded);
        for (const record of loaded) expected.set(record.id, record);
        for (const step of changes) {
          if ('add' in step) {
            index.add(step.add);
            for (const record of step.add) expected.set(record.id, record);
          } else {
            const ids = step.remove.map((pick) => [...expected.keys()][pick] ?? 'unknown');
            index.remove(ids);
            for (const id of ids) expected.delete(id);
          }
          assertSame(index, expected);
        }
      },
    ),
    { seed: 42, numRuns: 100 },
  );
});

test('compaction of the tail and moved rows change no result', () => {
  const index = new ColumnIndex();
  const expected = new Map<string, TileRecord>();
  const places = ['s0', 's01', '9q8', '9q8yy', 'u4pr', '6'];
  const make = (i: number, round: number) =>
    tile({
      scene: `s${i}`,
      geocode: places[i % places.length]!,
      start: (i * 7919 + round * 31) % 5000,
      coverage: i % 101,
    });
  for (let round = 0; round < 6; round++) {
    const records = Array.from({ length: 9000 }, (_, i) => make(i + round * 2000, round));
    for (let i = 0; i < records.length; i += 1500) index.add(records.slice(i, i + 1500));
    for (const record of records) expected.set(record.id, record);
    const gone = [...expected.keys()].filter((_, i) => i % 3 === round % 3);
    index.remove(gone);
    for (const id of gone) expected.delete(id);
    assertSame(index, expected);
  }
  // Only present rows are tested, and a compaction leaves no others.
  let visited = 0;
  index.query({ where: () => () => ++visited > 0 });
  assert.equal(visited, expected.size);
  index.compactTail();
  assert.equal(
    index.images().reduce((sum, { rows }) => sum + rows, 0),
    expected.size,
  );
  assertSame(index, expected);
});

test('a changed tile is found once, in its current version', () => {
  const index = new ColumnIndex();
  const before = tile({ geocode: 's0', id: 'x', start: 1 });
  const after = tile({ geocode: '9q', id: 'x', start: 2, platform: 'p' });
  index.add([before, before]);
  index.add([after]);
  assert.equal(index.size, 1);
  assert.deepEqual(index.query({ where: all, ranges: [rangeOf('s')] }).ids, []);
  assert.deepEqual(index.query({ where: all, ranges: [rangeOf('9')] }).ids, ['x']);
  index.load([before]);
  assert.deepEqual(index.query({ where: all, ranges: [rangeOf('9')] }).matched, 0);
  assert.equal(index.size, 1);
});

test('a record that cannot be added leaves the index as it was', () => {
  const index = new ColumnIndex();
  index.add([tile({ id: 'x' })]);
  assert.throws(() => index.add([tile({ id: 'x', geocode: 'ill' })]));
  assert.deepEqual(index.query({ where: all }).ids, ['x']);
});

test('the limit keeps the newest, and returns the cursor of the last one', () => {
  const index = new ColumnIndex();
  const records = Array.from({ length: 500 }, (_, i) => tile({ scene: `s${i}`, start: (i * 37) % 100 }));
  index.add(records);
  const sorted = records.sort(newestFirst);
  for (const limit of [1, 2, 7, 499, 500, 501]) {
    const page = index.query({ where: all, limit });
    assert.deepEqual(
      page.ids,
      sorted.slice(0, limit).map((record) => record.id),
    );
    assert.equal(page.matched, 500);
    const last = sorted[limit - 1]!;
    const next = limit < 500 ? { start: last.start, collection: last.collection, id: last.id } : undefined;
    assert.deepEqual(page.next, next);
    if (page.next) {
      const rest = index.query({ where: all, after: page.next });
      assert.deepEqual(
        rest.ids,
        sorted.slice(limit).map((record) => record.id),
      );
    }
  }
});

test('columns have the fields of a tile', async () => {
  const index = new ColumnIndex();
  const record = tile({
    grid: 'quadtile',
    geocode: '0231',
    start: 5,
    end: 9,
    cloudCover: 12.5,
    coverage: 99,
    platform: 'p',
  });
  index.add([record, tile({ id: 'y' })]);
  await index.forEach({ ids: ['y'] }, ({ columns, platforms }) => (row) => {
    assert.equal(columns.platform[row], platforms.codeOf(null));
    assert.ok(Number.isNaN(columns.cloud[row]));
  });
  const [image] = index.images();
  const { columns, names } = image!;
  assert.equal(gridByName('quadtile').geocode(columns.key[0]!, columns.precision[0]!), '0231');
  assert.deepEqual(
    [columns.start[0], columns.end[0], columns.cloud[0], columns.coverage[0]],
    [5, 9, 12.5, 99],
  );
  assert.equal(names.platforms[columns.platform[0]!], 'p');
});

test('a run has more names than 16 bits can count: collections, platforms and ranges of wavelengths', async () => {
  const count = 2 ** 16 + 10;
  const records = Array.from({ length: count }, (_, i) => {
    const band = { name: 'b', scale: 1, offset: 0, validPercent: 100, wavelength: 400 + i / 100 };
    const size = { width: 1, height: 1, bytes: 1, crc32: 1 };
    const group = { name: '30m', file: '30m', role: 'data' as const, dataType: 'uint16' as const, ...size };
    return tile({
      ...{ collection: `c${i}`, platform: `p${i}`, scene: `s${i}`, geocode: 's0', start: i },
      groups: [{ ...group, nodata: 0, bands: [band] }],
    });
  });
  const index = new ColumnIndex();
  index.load(records);
  assert.equal(index.size, count);
  const summaries = await collectionSummaries(index, WHOLE_INDEX);
  assert.equal(summaries.size, count);
  for (const i of [0, 1, 2 ** 16 - 1, 2 ** 16, count - 1])
    assert.deepEqual(summaries.get(`c${i}`)!.platforms, [`p${i}`]);
});
