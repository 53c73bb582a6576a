/** Checkpoints of the commit log while nodes work: a node writes one every thousand commits, which no test would wait for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { writeCheckpoint } from '../../src/dht/checkpoint.js';
import { forgetDoneClaims } from '../../src/dht/claims.js';
import { CommitLog, EtcdStore } from '../../src/dht/index.js';
import { DEFAULT_PREFIX_LENGTHS } from '../../src/dht/slots.js';
import { messageOf } from '../../src/errors.js';
import { openObjectStore } from '../../src/storage/index.js';
import type { TestCluster } from './cluster.js';
import type { Random } from './random.js';

/** Writes them as a node would that nothing happens to, until it is stopped. */
export class Checkpoints {
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
    const context = { log: new CommitLog(coordination), objects, prefixLengths: DEFAULT_PREFIX_LENGTHS };
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        const seq = await writeCheckpoint(context);
        await forgetDoneClaims(coordination, seq);
        settings.history.note(`checkpoint of commit ${seq}`);
      } catch (error) {
        settings.history.note(`no checkpoint: ${messageOf(error)}`);
      }
      // It is rejected at the end, which the loop sees.
      await sleep(random.between(500, 4000), undefined, { signal }).catch(() => undefined);
    }
    objects.close();
    await coordination.close();
  }
}
