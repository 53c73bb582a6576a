import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { segmentDamaged } from '../../../src/dht/errors.js';
import { encodeSegment, readSegment, SegmentReader } from '../../../src/dht/log/segment.js';
import { DEFAULT_PREFIX_LENGTHS, slotOf } from '../../../src/dht/slots.js';
import type { Commit, TileRecord } from '../../../src/storage/index.js';
import { tile, tiles } from '../../query/tiles.js';

const commits = fc.record({
  removed: fc.array(tiles, { maxLength: 20 }),
  added: fc.array(tiles, { maxLength: 20 }),
});
const slotOfTile = ({ grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>) =>
  slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid]);
const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

function storeOf(bytes: Buffer, reads: number[] = []) {
  return {
    get: async (
      _name: string,
      { offset = 0, length = Infinity }: { offset?: number; length?: number } = {},
    ) => {
      const part = bytes.subarray(offset, Math.min(bytes.length, offset + length));
      reads.push(part.length);
      return part;
    },
  };
}

test('a segment returns the changes of the wanted slots, and all edits', async () => {
  await fc.assert(
    fc.asyncProperty(commits, fc.integer({ min: 1, max: 4 }), async ({ removed, added }, every) => {
      const commit: Commit = {
        removed,
        added,
        edits: [{ table: 'scenes', key: 'a/s', record: null }],
        formerModels: [],
      };
      const { bytes, slots } = encodeSegment(commit, DEFAULT_PREFIX_LENGTHS);
      const all = [...removed, ...added].map(slotOfTile);
      assert.deepEqual(
        slots,
        [...new Set(all)].sort((a, b) => a - b),
      );
      const wants = (slot: number) => slot % every === 0;
      const found = await readSegment(storeOf(bytes), 'a', wants);
      const kept = <T extends Pick<TileRecord, 'grid' | 'geocode' | 'id'>>(list: T[]) =>
        list.filter((one) => wants(slotOfTile(one)));
      const versions = kept(removed).map(({ id, grid, geocode, version }) => ({
        id,
        grid,
        geocode,
        version,
      }));
      assert.deepEqual(found.removed!.sort(byId), versions.sort(byId));
      const plain = JSON.parse(JSON.stringify(kept(added))) as TileRecord[];
      assert.deepEqual(found.added!.sort(byId), plain.sort(byId));
      assert.deepEqual(found.edits, commit.edits);
    }),
    { seed: 42, numRuns: 100 },
  );
});

/** Records that compress badly, in many slots. */
function largeSegment() {
  const added = Array.from({ length: 2000 }, (_, i) => {
    const noise = Array.from(
      { length: 40 },
      (_, n) => [Math.sin(i * 41 + n), Math.cos(i * 43 + n)] as [number, number],
    );
    return tile({
      scene: `s${i}`,
      geocode: `9${'0123456789bcdefghjkm'[i % 20]}${'0123456789'[((i / 20) % 10) | 0]}y${i % 10}`,
      footprint: noise,
    });
  });
  return encodeSegment({ added }, DEFAULT_PREFIX_LENGTHS);
}

test('reading one slot of a large segment reads a small part of it', async () => {
  const { bytes, slots } = largeSegment();
  assert.ok(bytes.length > 2 ** 20);
  const reads: number[] = [];
  const last = slots.at(-1);
  const { added } = await readSegment(storeOf(bytes, reads), 'a', (slot) => slot === last);
  assert.ok(added!.length > 0);
  const read = reads.reduce((sum, length) => sum + length, 0);
  assert.ok(read < bytes.length / 2, `${read} of ${bytes.length} bytes`);
});

test('many tiles of one slot are read in chunks that are decoded quickly, in their order', async () => {
  const added = Array.from({ length: 1100 }, (_, i) => tile({ scene: `s${i}`, geocode: '9q8yy' }));
  const { bytes } = encodeSegment({ removed: added, added }, DEFAULT_PREFIX_LENGTHS);
  const reader = await SegmentReader.open(storeOf(bytes), 'a');
  const ids: string[] = [];
  let removed = 0;
  for await (const changes of reader.tiles(() => true)) {
    assert.ok(changes.added.length <= 250);
    assert.ok(changes.removed.length === 0 || ids.length === 0, 'removed before others are added');
    removed += changes.removed.length;
    ids.push(...changes.added.map(({ id }) => id));
  }
  assert.equal(removed, added.length);
  assert.deepEqual(
    ids,
    added.map(({ id }) => id),
  );
});

test('a truncated segment, or one with a flipped byte, is refused', async () => {
  const { bytes } = largeSegment();
  const all = () => true;
  for (const at of [0, 5, 17, 300, 2 ** 18 + 5, bytes.length - 1]) {
    const damaged = Buffer.from(bytes);
    damaged[at] ^= 1;
    await assert.rejects(readSegment(storeOf(damaged), 'a', all), (error) => segmentDamaged.is(error));
  }
  for (const length of [10, 16, 100, bytes.length - 1])
    await assert.rejects(readSegment(storeOf(bytes.subarray(0, length)), 'a', all), (error) =>
      segmentDamaged.is(error),
    );
});

test('a slot with 150,000 removed tiles can be read without exceeding the stack', async () => {
  const removed = Array.from({ length: 150_000 }, (_, i) => ({
    id: `c_s_g9q8y${i}`,
    grid: 'geohash' as const,
    geocode: '9q8yyyyy',
    version: 'v',
  }));
  const { bytes } = encodeSegment({ removed }, DEFAULT_PREFIX_LENGTHS);
  const commit = await readSegment(storeOf(bytes), 'a', () => true);
  assert.equal(commit.removed!.length, removed.length);
});
