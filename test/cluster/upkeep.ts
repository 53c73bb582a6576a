/**
 * Checkpoints of the commit log and sweeps of the store while nodes work. Nodes write a checkpoint every thousand commits and keep for a
 * day what was replaced, for which no test would wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { writeCheckpoint } from '../../src/dht/checkpoint.js';
import { forgetDoneClaims } from '../../src/dht/claims.js';
import { CommitLog, EtcdStore } from '../../src/dht/index.js';
import { readIdentity } from '../../src/dht/store-identity.js';
import { sweepStore } from '../../src/dht/sweep.js';
import { messageOf } from '../../src/errors.js';
import { openObjectStore } from '../../src/storage/index.js';
import type { TestCluster } from './cluster.js';
import type { Random } from './random.js';

/** How long a sweep keeps what was replaced, ms. */
const KEEP = 5000;

/** Does it as a node would that nothing happens to, until it is stopped. */
export class Upkeep {
  private readonly stopping = new AbortController();
  private readonly work: Promise<void>;

  constructor(cluster: TestCluster, random: Random) {
    this.work = this.run(cluster, random);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.work;
  }

  private async run({ etcd, etcdName, store, settings }: TestCluster, random: Random): Promise<void> {
    const coordination = new EtcdStore(etcd.urls, etcdName);
    const objects = await openObjectStore(pathToFileURL(store).href);
    const log = new CommitLog(coordination);
    const { id: cluster, prefixLengths } = (await readIdentity(objects))!;
    const context = { cluster, coordination, log, objects, prefixLengths, keep: KEEP, every: 0 };
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        const seq = await writeCheckpoint(context);
        await forgetDoneClaims(coordination, seq);
        const swept = await sweepStore(context);
        settings.history.note(`checkpoint of commit ${seq}; ${swept?.removed} objects are swept`);
      } catch (error) {
        settings.history.note(`no checkpoint or sweep: ${messageOf(error)}`);
      }
      // It is rejected at the end, which the loop sees.
      await sleep(random.between(500, 4000), undefined, { signal }).catch(() => undefined);
    }
    objects.close();
    await coordination.close();
  }
}
