/** Checks what a node needs to work: its disk, the object store, etcd. */
import { raceAbort } from '../../../async/index.js';
import type { ClusterService, Services } from '../../api-services.js';

export type Dependency = 'disk' | 'store' | 'etcd';
export type DependencyStates = Partial<Record<Dependency, 'ok' | 'unavailable'>>;

/** How long one check may take, ms. */
const CHECK_TIMEOUT_MS = 1000;
/**
 * How long results are reused, ms: anybody may request `/ready`, and often also `/metrics`, and must not cause requests to the object
 * store and to etcd at will.
 */
const REUSE_MS = 2000;

/** Exists in every object store of a cluster. */
const PROBED_OBJECT = 'cluster.json';

interface LogBounds {
  head: number;
  checkpoint: number;
}

async function readLogBounds({ cluster }: Pick<ClusterService, 'cluster'>): Promise<LogBounds | undefined> {
  // Callers report an etcd that does not answer as unavailable; the calls to etcd have their own error counter.
  const bounds = await cluster.log.bounds(CHECK_TIMEOUT_MS).catch(() => undefined);
  return bounds && bounds.head >= cluster.replica.applied ? bounds : undefined;
}

/** Checks the dependencies of a node at most once in `REUSE_MS`. */
export class DependencyChecks {
  private last:
    | { begun: number; logBounds: Promise<LogBounds | undefined>; states: Promise<DependencyStates> }
    | undefined;

  constructor(private readonly services: Pick<Services, 'storage' | 'cluster'>) {}

  /** The state of each dependency that the node has. Does not reject. */
  states(): Promise<DependencyStates> {
    return this.recent().states;
  }

  /**
   * The positions of the log in etcd; undefined without a cluster, and if etcd does not answer in time or lacks commits that this node
   * has applied. Does not reject.
   */
  logBounds(): Promise<LogBounds | undefined> {
    return this.recent().logBounds;
  }

  private recent() {
    const begun = performance.now();
    if (!this.last || begun - this.last.begun >= REUSE_MS) {
      const { cluster } = this.services;
      const logBounds = cluster ? readLogBounds(cluster) : Promise.resolve(undefined);
      this.last = { begun, logBounds, states: this.check(logBounds) };
    }
    return this.last;
  }

  private async check(logBounds: Promise<LogBounds | undefined>): Promise<DependencyStates> {
    const { cluster } = this.services;
    const checks: Partial<Record<Dependency, Promise<boolean>>> = {
      disk: this.isDiskWritable(),
      ...(cluster && { store: isAnswering(cluster.objects) }),
      ...(cluster?.hasEtcd && { etcd: logBounds.then((bounds) => bounds !== undefined) }),
    };
    const states = Object.entries(checks).map(async ([name, check]) => {
      const isOk = await check.catch(() => false);
      return [name, isOk ? 'ok' : 'unavailable'] as const;
    });
    return Object.fromEntries(await Promise.all(states));
  }

  /** False if a failed write has stopped all writes, or the disk has less free than the reserve. The cache of tile files can make room. */
  private async isDiskWritable(): Promise<boolean> {
    const { storage } = this.services;
    if (storage.catalogue.writeError !== undefined) return false;
    const { freeBytes, reserveBytes } = await storage.reserve.state();
    return freeBytes + (storage.cacheStats?.bytes ?? 0) >= reserveBytes;
  }
}

/** True if the object store answers in time. A hung file system ignores the signal. */
async function isAnswering(objects: ClusterService['objects']): Promise<boolean> {
  const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
  return (await raceAbort(objects.head(PROBED_OBJECT, { signal }), signal)) !== undefined;
}
