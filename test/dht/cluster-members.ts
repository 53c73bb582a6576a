/** Cluster nodes in this process, each with its own folder. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type ClusterOptions } from '../../src/dht/cluster.js';
import { Storage } from '../../src/storage/index.js';
import type { SharedStores } from './shared-stores.js';

export interface RunningMember {
  storage: Storage;
  cluster: Cluster;
  /** Errors of background work. */
  failures: unknown[];
  stop(): Promise<void>;
}

/** Starts a node, which is stopped at the end of the test at the latest. */
export async function startMember(
  { folder, objects, coordination, stops }: SharedStores,
  id: string,
  { cache, ...more }: { cache?: number } & Partial<ClusterOptions> = {},
): Promise<RunningMember> {
  const storage = more.storage ?? (await Storage.open(join(folder, id), { reserve: 0, cache }));
  const member = { id, url: `http://${id}`, zone: id, weight: 1, software: '0', format: 1 };
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const shared = { storage, objects, coordination, onFailure };
  const times = { gracePeriodMs: 300, releaseDelayMs: 100 };
  const cluster = await Cluster.join({ member, owners: 2, ...shared, ...times, ...more }).catch(
    async (error) => {
      await storage.close();
      throw error;
    },
  );
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      await cluster.close();
      await storage.close();
    })();
    return stopped;
  };
  stops.push(stop);
  return { storage, cluster, failures, stop };
}

export async function until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  for (const startedAt = performance.now(); !(await is()); await sleep(20))
    assert.ok(performance.now() - startedAt < 30_000, `${what} within 30 s`);
}
