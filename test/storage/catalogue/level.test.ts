/** Damage of the logs of LevelDB, which LevelDB's own report is the oracle for. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { Level } from 'level';
import { LevelStore } from '../../../src/coordination/index.js';
import { openLevel, Storage } from '../../../src/storage/index.js';
import { randomStream } from '../../../src/utils/random.js';
import { tempFolder } from '../../support/temp.js';
import { writeScene } from '../sample-scenes.js';

const logOf = async (folder: string) => {
  const name = (await readdir(folder)).find((one) => one.endsWith('.log'))!;
  return join(folder, name);
};

/** Damage of a log by a fault of a disk, a power cut or a copy. */
const fault = fc.oneof(
  fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), length: fc.nat(7) }),
  fc.record({
    kind: fc.constant('zero' as const),
    at: fc.nat(),
    length: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), length: fc.constant(0) }),
  fc.record({
    kind: fc.constant('remove' as const),
    at: fc.nat(),
    length: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({
    kind: fc.constant('append' as const),
    at: fc.nat(),
    length: fc.integer({ min: 1, max: 40_000 }),
  }),
);

function withFault(log: Buffer, { kind, at, length }: { kind: string; at: number; length: number }): Buffer {
  const from = at % log.length;
  if (kind === 'cut') return log.subarray(0, from);
  if (kind === 'append') return Buffer.concat([log, Buffer.alloc(length)]);
  const bytes = Buffer.from(log);
  if (kind === 'flip') bytes[from]! ^= 1 << length;
  if (kind === 'zero') bytes.fill(0, from, Math.min(from + length, log.length));
  return kind === 'remove' ? Buffer.concat([log.subarray(0, from), log.subarray(from + length)]) : bytes;
}

/** Sizes of records: fragments in several blocks, headers at the ends of blocks, and many small ones. */
const RECORDS = [10, 32_000, 700, 100_000, ...Array<number>(40).fill(900), 65_500, 5];

test('a database is refused if LevelDB would drop records of its log, before LevelDB changes anything', async (t) => {
  const folder = await tempFolder(t);
  const sound = join(folder, 'sound');
  const random = randomStream(52);
  const db = new Level<string, string>(sound);
  await db.open();
  for (const [n, size] of RECORDS.entries())
    await db.put(`key ${n}`, String.fromCharCode(97 + random.next() * 26).repeat(size));
  await db.close();
  const log = await readFile(await logOf(sound));
  let refused = 0;
  const property = fc.asyncProperty(fault, async (one) => {
    const [ours, theirs] = ['ours', 'theirs'].map((name) => join(folder, name));
    const damaged = withFault(log, one);
    for (const copy of [ours!, theirs!]) {
      await cp(sound, copy, { recursive: true });
      await writeFile(await logOf(copy), damaged);
    }
    const oracle = new Level<string, string>(theirs!);
    await oracle.open();
    const numbers = (await oracle.keys().all()).map((key) => Number(key.slice(4))).sort((a, b) => a - b);
    await oracle.close();
    const isReported = /dropping \d+ bytes/.test(await readFile(join(theirs!, 'LOG'), 'utf8'));
    // A killed writer leaves the first records. LevelDB does not report records behind zeros.
    const drops = isReported || numbers.some((number, i) => number !== i);
    // The mark cannot be written.
    await mkdir(join(folder, 'ours.damaged.tmp'), { recursive: true });
    const opened = await openLevel<string>(ours!).catch((error) => error);
    assert.ok(!drops || opened instanceof Error, 'LevelDB drops records');
    if (opened instanceof Error) {
      refused++;
      assert.ok(drops || numbers.length < RECORDS.length, 'nothing was lost');
      assert.deepEqual(await readFile(await logOf(ours!)), damaged, 'the log has changed without a mark');
      await rm(join(folder, 'ours.damaged.tmp'), { recursive: true });
      for (let n = 0; n < 2; n++) await assert.rejects(openLevel(ours!), { code: 'TW_STORAGE_DAMAGED' });
      await rm(join(folder, 'ours.damaged'));
      await (await openLevel(ours!)).close();
    } else await (opened as Level<string, string>).close();
    for (const copy of [ours!, theirs!]) await rm(copy, { recursive: true });
  });
  await fc.assert(property, { seed: 52, numRuns: 100 });
  assert.ok(refused > 30 && refused < 90, `${refused} of 100 faults lose records`);
});

test('no tile is removed if the mark of lost records cannot be written', async (t) => {
  const dir = join(await tempFolder(t), 'data');
  const storage = await Storage.open(dir);
  await writeScene(storage, 'a', 7);
  await storage.close();
  // As after a kill, when the index has no snapshot of the lost commit.
  await rm(join(dir, 'columns'), { recursive: true });
  const tiles = async () =>
    (await readdir(join(dir, 'tiles'), { recursive: true })).filter((name) => name.endsWith('.tif')).sort();
  const before = await tiles();
  assert.ok(before.length > 0);
  const log = await logOf(join(dir, 'catalogue'));
  const bytes = await readFile(log);
  bytes[Math.floor(0.6 * bytes.length)]! ^= 0xff;
  await writeFile(log, bytes);
  await mkdir(join(dir, 'damaged.tmp'));
  for (let n = 0; n < 2; n++) await assert.rejects(Storage.open(dir));
  await rm(join(dir, 'damaged.tmp'), { recursive: true });
  for (let n = 0; n < 2; n++) await assert.rejects(Storage.open(dir), { code: 'TW_STORAGE_DAMAGED' });
  assert.deepEqual(await tiles(), before);
});

test('a coordination folder that has lost records is refused until its mark is removed', async (t) => {
  const folder = join(await tempFolder(t), 'coordination');
  const store = await LevelStore.open(folder);
  for (const key of ['a', 'b', 'c'])
    await store.transact({ success: [{ op: 'put', key, value: key.repeat(100) }] });
  await store.close();
  const log = await logOf(folder);
  const bytes = await readFile(log);
  bytes[bytes.length - 50]! ^= 1;
  await writeFile(log, bytes);
  for (let n = 0; n < 2; n++)
    await assert.rejects(LevelStore.open(folder), {
      code: 'TW_STORAGE_DAMAGED',
      message: `${folder} has lost records; restore the data folder from a backup, or remove ${folder}.damaged to continue with the remaining records`,
    });
  await rm(`${folder}.damaged`);
  const remaining = await LevelStore.open(folder);
  const { gets } = await remaining.read([{ key: 'a' }, { key: 'c' }]);
  assert.deepEqual(
    gets.map(({ kvs }) => kvs.length),
    [1, 0],
  );
  await remaining.close();
});
