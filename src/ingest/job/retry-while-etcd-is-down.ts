/** Repeats the ingest of a scene while etcd does not answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationUnavailable } from '../../coordination/index.js';
import type { JobContext } from '../../jobs/index.js';

/** A restart of etcd or the election of a leader takes less than this; after it, a scene fails. */
const ETCD_RETRY_TIMEOUT_MS = 120_000;
const ETCD_RETRY_INTERVAL_MS = 1000;

/** Repeats work if etcd failed before a commit, for up to ETCD_RETRY_TIMEOUT_MS. `path`: name of the scene for the log. */
export async function retryWhileEtcdIsDown<T>(
  { log, signal }: Pick<JobContext, 'log' | 'signal'>,
  path: string,
  work: () => Promise<T>,
): Promise<T> {
  for (let until: number | undefined; ; ) {
    try {
      return await work();
    } catch (error) {
      until ??= performance.now() + ETCD_RETRY_TIMEOUT_MS;
      if (!coordinationUnavailable.is(error) || performance.now() > until) throw error;
      log('warning', `${path}: etcd does not answer; the scene will be retried`);
      await sleep(ETCD_RETRY_INTERVAL_MS, undefined, { signal });
    }
  }
}
