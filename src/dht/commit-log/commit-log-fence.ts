import { type CoordinationStore, retryUntilAnswered } from '../../coordination/index.js';

/** This key is written only for its revision. */
const FENCE_KEY = 'fence';
/**
 * Revisions of one coordination store stay below this limit: 34 years at 1,000 changes a second. The 53 bits of an integer leave room for
 * 2^13 restores.
 */
const FENCES_PER_EPOCH = 2 ** 40;
const TIMEOUT_MS = 30_000;

/**
 * A number for the versions of a new lock in epoch `epoch`. It is larger than that of every earlier lock on this tile store and is never
 * used twice. In epoch 0, before any restore, the fence of the lock is such a number.
 *
 * Fences are revisions, and the revisions of a new etcd begin near 0 again. Without this function, a version that is written after a
 * restore could repeat the name of a stored version, whose bytes caches hold under that name, and would sort before older ones. As in a
 * ZooKeeper zxid, the high part is the epoch and the low part is a revision. It is the revision of a separate put and not the fence of
 * the lock, because the key of the lock must contain the number: garbage collection, even on a node with an older version of the
 * program, keeps all names that begin with a number in a held lock.
 */
export async function nextFenceInEpoch(coordination: CoordinationStore, epoch: number): Promise<number> {
  // If an answer is lost and the put is repeated, one number stays unused.
  const { revision } = await retryUntilAnswered(TIMEOUT_MS, (timeoutMs) =>
    coordination.transact({ success: [{ op: 'put', key: FENCE_KEY, value: '' }] }, { timeoutMs }),
  );
  return epoch * FENCES_PER_EPOCH + revision;
}
