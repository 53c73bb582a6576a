/** Checkpoints: their content, and the work that they take. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { readManifest, segmentsOf, writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { acquireLock } from '../../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import {
  encodeSegment,
  mergeSegments,
  readSegment,
  SegmentReader,
  segmentName,
} from '../../../src/dht/log/segment.js';
import { DEFAULT_PREFIX_LENGTHS, SlotSet } from '../../../src/dht/slots.js';
import type { Commit, RecordEdit, TileRecord } from '../../../src/storage/index.js';
import { tile } from '../../query/tiles.js';
import { sharedStores } from '../shared-stores.js';
import { FoldedCommits, foldedCommits } from './folded-commits.js';

const CELLS = ['9q8yy', '9q8yz', 'c2b2n', 'drt2z', 'u4pru', 'u4prv'];
const idOf = (scene: number, cell: string) => `c_s${scene}_g${cell}`;

/** Changes of a commit to a few tiles and records, by what is present. */
interface Step {
  remove: number[];
  add: [scene: number, cell: number][];
  edit: [key: number, isDeleted: boolean][];
}

const steps: fc.Arbitrary<Step> = fc.record({
  remove: fc.array(fc.nat(100), { maxLength: 4 }),
  add: fc.array(fc.tuple(fc.nat(3), fc.nat(CELLS.length - 1)), { maxLength: 6 }),
  edit: fc.array(fc.tuple(fc.nat(5), fc.boolean()), { maxLength: 3 }),
});

/** The commit of a step, which replaces tiles that are present. */
function commitOf({ remove, add, edit }: Step, n: number, { tiles }: FoldedCommits): Commit {
  const present = [...tiles.values()];
  const ids = new Set(present.length > 0 ? remove.map((at) => present[at % present.length]!.id) : []);
  const added = new Map<string, TileRecord>();
  for (const [scene, at] of add) {
    const geocode = CELLS[at]!;
    const id = idOf(scene, geocode);
    if (tiles.has(id)) ids.add(id);
    added.set(id, tile({ id, scene: `s${scene}`, geocode, version: `v${n}` }));
  }
  const edits = new Map<string, RecordEdit>();
  for (const [key, isDeleted] of edit)
    edits.set(`s${key}`, {
      table: 'scenes',
      key: `c/s${key}`,
      record: isDeleted ? null : ({ id: `s${key}`, n } as never),
    });
  return {
    removed: [...ids].map((id) => tiles.get(id)!),
    added: [...added.values()],
    edits: [...edits.values()],
  };
}

const plain = <T>(map: Map<string, T>): unknown =>
  JSON.parse(JSON.stringify([...map].sort(([a], [b]) => (a < b ? -1 : 1))));

function storeOf(bytes: Uint8Array) {
  return {
    get: async (_: string, { offset = 0, length = Infinity }: { offset?: number; length?: number } = {}) =>
      Buffer.from(bytes).subarray(offset, offset + length),
  };
}

test('merged in any groups, segments have the result of their commits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 1, maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 }),
      async (all, groups) => {
        const expected = new FoldedCommits();
        const segments = all.map((step, n) => {
          const commit = commitOf(step, n, expected);
          expected.apply(commit);
          return encodeSegment(commit, DEFAULT_PREFIX_LENGTHS).bytes as Uint8Array;
        });
        const merge = async (some: Uint8Array[], isComplete: boolean) => {
          const readers = await Promise.all(some.map((bytes) => SegmentReader.open(storeOf(bytes), 'a')));
          return mergeSegments(
            await Promise.all(readers.map((reader) => reader.slice(() => true))),
            isComplete,
          );
        };
        // Neighbours are merged until one is left; of that, nothing is before.
        let merged = segments;
        for (let at = 0; merged.length > 1; at = (at + 1) % merged.length) {
          const count = 1 + groups[at % groups.length]!;
          const before = merged.slice(0, at);
          merged = [...before, await merge(merged.slice(at, at + count), false), ...merged.slice(at + count)];
        }
        const state = new FoldedCommits();
        const { removed, added, edits } = await readSegment(
          storeOf(await merge(merged, true)),
          'a',
          () => true,
        );
        assert.deepEqual(removed, []);
        assert.ok(edits.every(({ record }) => record !== null));
        state.apply({ added, edits });
        assert.deepEqual(plain(state.tiles), plain(expected.tiles));
        assert.deepEqual(plain(state.records), plain(expected.records));
      },
    ),
    { seed: 7, numRuns: 150 },
  );
});

/** A log with commits that are made without a node. */
async function logOf(t: TestContext) {
  const { objects, coordination } = await sharedStores(t);
  const log = new CommitLog(coordination);
  const expected = new FoldedCommits();
  let commits = 0;
  const commit = async (changes: Commit) => {
    const lock = await acquireLock(coordination, `test/${++commits}`, 'test');
    const segment = `${lock.fence}-${randomUUID()}`;
    const { bytes, slots } = encodeSegment(changes, DEFAULT_PREFIX_LENGTHS);
    await objects.put(segmentName(segment), bytes);
    await log.commit(lock, { segment, slots: new SlotSet(slots).toText() });
    await lock.release();
    expected.apply(changes);
  };
  let bytes = 0;
  const counted = new Proxy(objects, {
    get(target, key) {
      const value = Reflect.get(target, key) as unknown;
      if (typeof value !== 'function') return value;
      if (key !== 'put') return value.bind(target);
      return (name: string, content: Buffer, ...rest: unknown[]) => {
        bytes += content.length;
        return value.call(target, name, content, ...rest);
      };
    },
  });
  /** Writes a checkpoint, compares it with all commits, and returns its manifest and the bytes that it took. */
  const checkpoint = async () => {
    bytes = 0;
    assert.equal(await writeLogCheckpoint({ log, objects: counted }), commits);
    const stored = await log.readCheckpoint();
    const state = await foldedCommits(objects, stored, []);
    assert.deepEqual(plain(state.tiles), plain(expected.tiles));
    assert.deepEqual(plain(state.records), plain(expected.records));
    return { ...(await readManifest(objects, stored)), bytes };
  };
  return { objects, expected, commit, checkpoint };
}

/** Tiles of many slots whose records compress badly. */
function noisyTiles(count: number, version: string): TileRecord[] {
  return Array.from({ length: count }, (_, i) => {
    const geocode = `9${'0123456789bcdefghjkm'[i % 20]}${'0123456789'[((i / 20) % 10) | 0]}y${i % 10}`;
    const noise = (n: number, seed: number) => Math.sin(i * 41 + n + seed + version.length);
    const footprint = Array.from({ length: 40 }, (_, n): [number, number] => [noise(n, 0), noise(n, 0.5)]);
    return tile({ id: `c_s${i}_g${geocode}`, scene: `s${i}`, geocode, footprint, version });
  });
}

test('a checkpoint writes as many bytes as its commits, and large deltas become parts', async (t) => {
  const { objects, expected, commit, checkpoint } = await logOf(t);
  await commit({ added: noisyTiles(3000, 'v1') });
  const first = await checkpoint();
  assert.deepEqual(first.deltas, [], 'the first checkpoint is larger than what is merged');
  assert.ok(first.parts.filter((part) => part !== null).length > 100);

  const [one, other] = noisyTiles(2, 'v2');
  await commit({ removed: [expected.tiles.get(one!.id)!], added: [one!] });
  const second = await checkpoint();
  assert.deepEqual(second.parts, first.parts);
  assert.equal(second.deltas.length, 1);
  const manifestBytes = Buffer.byteLength(JSON.stringify({ parts: second.parts, deltas: second.deltas }));
  assert.ok(second.bytes < manifestBytes + 5000, `${second.bytes} bytes`);

  // Removed and added again, in one delta and in another.
  await commit({ removed: [expected.tiles.get(other!.id)!] });
  await checkpoint();
  await commit({ added: [other!] });
  await checkpoint();
  for (let n = 3; n < 30; n++) {
    const added = noisyTiles(2 + ((n * 7) % 40), `v${n}`);
    await commit({ removed: added.map(({ id }) => expected.tiles.get(id)!), added });
    const { parts, deltas } = await checkpoint();
    const sizes = deltas.map(({ bytes }) => bytes);
    for (const [i, size] of sizes.slice(1).entries()) assert.ok(sizes[i]! > 2 * size, sizes.join(' '));
    assert.deepEqual(parts, first.parts);
  }

  const changed = noisyTiles(1500, 'changed');
  await commit({ removed: changed.map(({ id }) => expected.tiles.get(id)!), added: changed });
  const last = await checkpoint();
  assert.deepEqual(last.deltas, []);
  for (const name of segmentsOf(last)) {
    const { removed, edits } = await readSegment(objects, name, () => true);
    assert.deepEqual([removed, edits], [[], []]);
  }
});

test('parts have no records that were deleted', async (t) => {
  const { objects, expected, commit, checkpoint } = await logOf(t);
  const scenes = Array.from(
    { length: 600 },
    (_, n): RecordEdit => ({ table: 'scenes', key: `c/s${n}`, record: { id: `s${n}` } as never }),
  );
  await commit({ added: noisyTiles(2000, 'v1'), edits: scenes });
  await checkpoint();
  await commit({
    removed: [...expected.tiles.values()].slice(5),
    edits: scenes.slice(3).map(({ key }): RecordEdit => ({ table: 'scenes', key, record: null })),
  });
  await checkpoint();
  await commit({ added: noisyTiles(2000, 'v2') });
  const last = await checkpoint();
  assert.deepEqual(last.deltas, []);
  const segments = await Promise.all(segmentsOf(last).map((name) => readSegment(objects, name, () => true)));
  assert.equal(segments.flatMap(({ edits }) => edits).length, 3);
  assert.ok(
    segments.every(({ edits, removed }) => removed.length === 0 && edits.every(({ record }) => record)),
  );
  assert.equal(expected.records.size, 3);
});
