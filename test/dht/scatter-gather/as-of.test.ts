/** Nodes at different commits answer together as of one commit. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ClusterLockManager } from '../../../src/dht/log/locks.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { Replica } from '../../../src/dht/replica.js';
import { DEFAULT_PREFIX_LENGTHS as prefixLengths, SLOTS } from '../../../src/dht/slots.js';
import { messageOf } from '../../../src/errors.js';
import { Storage } from '../../../src/storage/index.js';
import { COLLECTION, writeScene } from '../../storage/sample-scenes.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

interface Node {
  storage: Storage;
  replica: Replica;
}

/** A node that follows the log, or applies commits only when the test asks for it. */
async function openReplica(place: SharedStores, id: string, follows = false): Promise<Node> {
  const { folder, objects, coordination, stops } = place;
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  const log = new CommitLog(coordination);
  const replica = await Replica.open({ storage, objects, log, cluster: 'c', prefixLengths });
  const shared = { storage, coordination, log, objects, replica, prefixLengths };
  const onFailure = (error: unknown) => process.emitWarning(messageOf(error));
  storage.enterCluster(new ClusterLockManager({ ownerLabel: id, ...shared }), objects, onFailure);
  if (follows) replica.start();
  stops.push(async () => {
    await replica.close();
    await storage.close();
  });
  return { storage, replica };
}

const slotsWhere = (is: (slot: number) => boolean) =>
  Array.from({ length: SLOTS }, (_, slot) => slot).filter(is);

/** The tiles of a node as of a commit, with their versions. */
async function tilesAsOf({ storage }: Node, seq: number): Promise<string[]> {
  const { ids } = storage.index.asOf(seq, () => storage.index.query({}));
  const tiles = await storage.getTiles(ids, seq);
  assert.deepEqual(
    tiles.map(({ id }) => id),
    ids,
  );
  return tiles.map(({ id, version }) => `${id} ${version}`);
}

/** The same for every commit so far, from the node that makes them. */
class History {
  private readonly states = new Map<number, string[]>([[0, []]]);

  constructor(private readonly writer: Node) {}

  async note(): Promise<void> {
    const { applied } = this.writer.replica;
    this.states.set(applied, (await tilesAsOf(this.writer, applied)).sort());
  }

  async assertSame(nodes: Node[], seq: number): Promise<void> {
    const found = await Promise.all(nodes.map((node) => tilesAsOf(node, seq)));
    assert.deepEqual(found.flat().sort(), this.states.get(seq), `as of commit ${seq}`);
  }
}

test('nodes at different commits return the state of one of them, including replaced and deleted tiles', async (t) => {
  const place = await sharedStores(t);
  const [writer, a, b] = await Promise.all([...'wab'].map((id) => openReplica(place, id, id === 'w')));
  await writer!.replica.loadSlots(slotsWhere(() => true));
  await a!.replica.loadSlots(slotsWhere((slot) => slot % 2 === 0));
  await b!.replica.loadSlots(slotsWhere((slot) => slot % 2 === 1));
  const history = new History(writer!);
  const readers = [a!, b!];

  for (let n = 1; n <= 40; n++) {
    // Some tiles are new, some replace others, some are deleted.
    if (n % 7 === 0) await writer!.storage.collections.deleteScene(COLLECTION.id, `scene-${(n - 1) % 5}`);
    else await writeScene(writer!.storage, `scene-${n % 5}`, n);
    await history.note();
    if (n % 3 === 0) await a!.replica.catchUp();
    if (n % 4 === 0) {
      // Reads continue while commits arrive.
      const seq = Math.min(a!.replica.applied, b!.replica.applied);
      await Promise.all([b!.replica.catchUp(), history.assertSame(readers, seq)]);
    }
    const both = Math.min(a!.replica.applied, b!.replica.applied);
    if (both > 0) await history.assertSame(readers, Math.max(1, both - (n % 6)));
  }
  await Promise.all(readers.map(({ replica }) => replica.catchUp()));
  for (let seq = 1; seq <= writer!.replica.applied; seq++) await history.assertSame(readers, seq);
});

test('a node that has got other slots, or was reopened, does not answer as of earlier commits', async (t) => {
  const place = await sharedStores(t);
  const [writer, a] = await Promise.all([...'wa'].map((id) => openReplica(place, id, id === 'w')));
  await writer!.replica.loadSlots(slotsWhere(() => true));
  const history = new History(writer!);
  const write = async (scene: string, n: number) => {
    await writeScene(writer!.storage, scene, n);
    await history.note();
  };
  await write('one', 1);
  await write('two', 2);
  await a!.replica.catchUp();
  await tilesAsOf(a!, 1);

  const changes = [
    () => a!.replica.loadSlots(slotsWhere(() => true)),
    async () => {
      await a!.replica.dropSlots(slotsWhere((slot) => slot % 3 === 0));
      await a!.replica.loadSlots(slotsWhere((slot) => slot % 3 === 0));
    },
  ];
  for (const [i, change] of changes.entries()) {
    await change();
    const { applied } = a!.replica;
    await history.assertSame([a!], applied);
    await assert.rejects(tilesAsOf(a!, applied - 1), { code: 'TW_STORAGE_TOO_OLD' });
    await write('one', 3 + i);
    await a!.replica.catchUp();
    await history.assertSame([a!], applied);
  }
  const { applied } = a!.replica;
  await a!.replica.close();
  await a!.storage.close();
  const again = await openReplica(place, 'a');
  assert.equal(again.replica.applied, applied);
  await history.assertSame([again], applied);
  await assert.rejects(tilesAsOf(again, applied - 1), { code: 'TW_STORAGE_TOO_OLD' });
  await write('two', 9);
  await again.replica.catchUp();
  await history.assertSame([again], applied);
});
