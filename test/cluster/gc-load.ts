/**
 * Checkpoints of the commit log and garbage collections of the store while nodes work. Nodes write a checkpoint every thousand commits and
 * keep replaced objects for a day, which is too long for a test.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { EtcdStore } from '../../src/coordination/index.js';
import { collectObjectGarbage } from '../../src/dht/garbage.js';
import { MANIFESTS_FOLDER, writeLogCheckpoint } from '../../src/dht/log/checkpoint.js';
import { pruneCommittedLocks } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { readIdentity } from '../../src/dht/recovery.js';
import { messageOf } from '../../src/errors.js';
import { type ObjectStore, openObjectStore } from '../../src/storage/index.js';
import type { TestCluster } from './cluster.js';
import type { UpkeepRun } from './history.js';
import type { Random } from './random.js';

/** How long a garbage collection keeps replaced objects, ms. */
const KEEP_MS = 5000;

/** Does the work like a node without faults, until it is stopped. */
export class CheckpointAndGcLoad {
  private readonly stopping = new AbortController();
  private readonly work: Promise<void>;

  /** Each request to the store takes `latency` ms longer. */
  constructor(
    private readonly cluster: TestCluster,
    private readonly random: Random,
    private readonly latency = 0,
  ) {
    this.work = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.work;
  }

  private async run(): Promise<void> {
    const { etcd, etcdName, store } = this.cluster;
    const coordination = new EtcdStore(etcd.urls, etcdName);
    const opened = await openObjectStore(pathToFileURL(store).href);
    const { id: cluster, prefixLengths } = (await readIdentity(opened))!;
    const counts = { manifests: 0 };
    const objects = slowed(opened, this.latency, counts);
    const log = new CommitLog(coordination);
    const context = { cluster, coordination, log, objects, prefixLengths, keepMs: KEEP_MS, minIntervalMs: 0 };
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const isDone = await this.record('checkpoint', counts, log, async () => {
        await pruneCommittedLocks(coordination, await writeLogCheckpoint(context));
      });
      if (isDone) await this.record('sweep', counts, log, () => collectObjectGarbage(context));
      // The signal rejects the wait at the end; the loop checks it.
      await sleep(this.random.between(500, 4000), undefined, { signal }).catch(() => undefined);
    }
    opened.close();
    await coordination.close();
  }

  /** One run, during which the harness does nothing else to the store or etcd. False if it failed. */
  private record(
    work: UpkeepRun['work'],
    counts: { manifests: number },
    log: CommitLog,
    does: () => Promise<unknown>,
  ): Promise<boolean> {
    const { history } = this.cluster.settings;
    return this.cluster.alone(async () => {
      const invoked = history.now();
      const before = counts.manifests;
      const head = await log.bounds().catch(() => undefined);
      const failure = await does().then(
        () => undefined,
        (error: unknown) => messageOf(error),
      );
      const last = await log.bounds().catch(() => undefined);
      history.add<UpkeepRun>({
        kind: 'upkeep',
        work,
        invoked,
        ended: history.now(),
        outcome: failure === undefined ? 'done' : 'failed',
        commits: head && last ? last.head - head.head : 0,
        manifests: counts.manifests - before,
        ...(failure !== undefined && { why: failure }),
      });
      return failure === undefined;
    });
  }
}

/** A store whose reads and writes of objects take `latency` ms longer; `counts` counts the checkpoints that are put. */
function slowed(store: ObjectStore, latency: number, counts: { manifests: number }): ObjectStore {
  const wait = () => (latency > 0 ? sleep(latency) : undefined);
  const slow: Pick<ObjectStore, 'get' | 'head' | 'put'> = {
    get: async (...args) => {
      await wait();
      return store.get(...args);
    },
    head: async (...args) => {
      await wait();
      return store.head(...args);
    },
    put: async (name, ...rest) => {
      if (name.startsWith(MANIFESTS_FOLDER)) counts.manifests++;
      await wait();
      return store.put(name, ...rest);
    },
  };
  return new Proxy(store, {
    get(target, key) {
      if (Object.hasOwn(slow, key)) return slow[key as keyof typeof slow];
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
