/** The commands of docs/how-to/back-up-and-restore.md that copy a store while nodes write, and the restore of the copy. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { LevelStore } from '../../../src/coordination/level-store.js';
import { writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { restoreCoordination } from '../../../src/dht/recovery.js';
import { SLOTS } from '../../../src/dht/slots.js';
import { openObjectStore } from '../../../src/storage/index.js';
import { COLLECTION, cellsOf, writeScene } from '../../storage/sample-scenes.js';
import { startMember, until } from '../cluster-members.js';
import { sharedStores } from '../shared-stores.js';

const noRsync = spawnSync('rsync', ['--version']).error ? 'rsync is not installed' : false;
/** Scenes that are written repeatedly; each delivery has other cells. */
const SCENES = 4;

/** The commands for a folder, with other paths. */
async function backupCommands(store: string, backup: string): Promise<string> {
  const text = await readFile(
    new URL('../../../../docs/how-to/back-up-and-restore.md', import.meta.url),
    'utf8',
  );
  const lines = text.split('\n').filter((line) => /^(mkdir|rsync) /.test(line));
  assert.equal(lines.length, 3);
  return lines.join('\n').replaceAll('/mnt/tiles', store).replaceAll('/backup/tiles', backup);
}

test('a store that is copied while nodes write has every commit from before the copy, and complete ones after', {
  skip: noRsync,
}, async (t) => {
  const where = await sharedStores(t);
  const { storage } = await startMember(where, 'a');
  const log = new CommitLog(where.coordination);
  /** The deliveries of each scene, in order. */
  const written: number[][] = Array.from({ length: SCENES }, () => []);
  let n = 0;
  const write = async () => {
    n++;
    await writeScene(storage, `s${n % SCENES}`, n);
    written[n % SCENES]!.push(n);
    if (n % 7 === 0) await writeLogCheckpoint({ log, objects: where.objects });
  };
  while (n < 20) await write();
  const before = written.map((deliveries) => deliveries.at(-1)!);

  let isCopied = false;
  const writing = (async () => {
    while (!isCopied) await write();
  })();
  const copy = join(where.folder, 'backup');
  await promisify(execFile)('sh', ['-ec', await backupCommands(join(where.folder, 'store'), copy)]).finally(
    () => {
      isCopied = true;
    },
  );
  await writing;

  const coordination = await LevelStore.open(join(where.folder, 'coordination-2'));
  const objects = await openObjectStore(pathToFileURL(copy).href);
  const restored = { ...where, coordination, objects, stops: [] as (() => Promise<void>)[] };
  where.stops.push(async () => {
    for (const stop of restored.stops.toReversed()) await stop();
    await coordination.close();
  });
  await restoreCoordination(coordination, objects);
  const b = await startMember(restored, 'b');
  await until('all slots are loaded', () => b.cluster.replica.slots.length === SLOTS);
  await b.cluster.replica.catchUp();
  const tiles = await b.storage.getTiles(b.storage.index.query({}).ids);
  for (const tile of tiles) await b.storage.ensureFiles(tile, tile.groups);
  for (let s = 0; s < SCENES; s++) {
    const own = tiles.filter(({ scene }) => scene === `s${s}`);
    const delivery = own[0]!.start / 1000;
    assert.ok(written[s]!.includes(delivery) && delivery >= before[s]!, `delivery ${delivery} of s${s}`);
    const ids = cellsOf(delivery).map((cell) => `${COLLECTION.id}_s${s}_g${cell}`);
    assert.deepEqual(own.map(({ id }) => id).sort(), ids.sort());
  }
});
