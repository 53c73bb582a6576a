/** Commits, fetches and loads slots as a node does, in this process: it owns no slots and is not a member. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EtcdStore } from '../../src/coordination/etcd-store.js';
import { writeLogCheckpoint } from '../../src/dht/log/checkpoint.js';
import { ClusterLockManager } from '../../src/dht/log/locks.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { openClusterIdentity } from '../../src/dht/recovery.js';
import { Replica } from '../../src/dht/replica.js';
import { type ObjectStore, openObjectStore, Storage } from '../../src/storage/index.js';
import type { LockManager } from '../../src/storage/write-lock.js';
import { type Place, storeOf } from './servers.js';

export interface Writer {
  storage: Storage;
  objects: ObjectStore;
  claims: LockManager;
  replica: Replica;
  checkpoint(): Promise<unknown>;
  close(): Promise<void>;
}

/** `name`: of its data folder, which `storage` has already opened. `keptEntries`: how many entries before a checkpoint stay in the log. */
export async function openWriter(
  place: Place,
  {
    name = 'writer',
    storage: opened,
    keptEntries,
  }: { name?: string; storage?: Storage; keptEntries?: number } = {},
): Promise<Writer> {
  const dir = join(place.folder, name);
  await mkdir(dir, { recursive: true });
  const objects = await openObjectStore(storeOf(place));
  const coordination = new EtcdStore(place.etcd.urls, 'default');
  const log = new CommitLog(coordination, keptEntries);
  const { id, prefixLengths } = await openClusterIdentity(objects, coordination, log);
  const storage = opened ?? (await Storage.open(dir, { reserve: 0 }));
  const shared = { objects, log, prefixLengths };
  const replica = await Replica.open({ ...shared, storage, cluster: id });
  const claims = new ClusterLockManager({
    ...shared,
    storage,
    coordination,
    replica,
    ownerLabel: 'benchmark',
  });
  storage.enterCluster(claims, objects);
  await replica.catchUp();
  replica.start();
  return {
    storage,
    objects,
    claims,
    replica,
    checkpoint: () => writeLogCheckpoint(shared),
    close: async () => {
      await replica.close();
      await storage.close();
      await coordination.close();
      objects.close();
    },
  };
}
