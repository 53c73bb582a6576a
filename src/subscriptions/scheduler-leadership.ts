import { type CoordinationStore, compareAndSet, Lease, readKey } from '../coordination/index.js';

const LEADER_KEY = 'subscriptions/leader';
/** Seconds after which another node can lead instead of a dead one. */
const LEASE_TTL_S = 10;

/**
 * Decides which node runs the scheduler.
 *
 * Invariant: the key of the leader belongs to one lease at a time, and expires with it. A node that has lost its connection may believe for
 * longer that it leads; the compare-and-set of each round keeps that harmless.
 */
export class Leadership {
  private lease: Lease | undefined;

  /** `self`: id of this node. */
  constructor(private readonly self: string) {}

  /** True if this node leads. If no node does, it becomes the leader. */
  async acquire(store: CoordinationStore): Promise<boolean> {
    if (this.lease && !this.lease.lost.aborted) return true;
    this.lease = undefined;
    if (await readKey(store, LEADER_KEY)) return false;
    const lease = await Lease.grant(store, LEASE_TTL_S);
    try {
      const value = JSON.stringify({ node: this.self, lease: lease.id });
      const { set } = await compareAndSet(store, { key: LEADER_KEY, value, revision: 0, lease: lease.id });
      if (set) this.lease = lease;
    } finally {
      if (this.lease !== lease) await lease.revoke();
    }
    return this.lease === lease;
  }

  /** Lets another node lead. */
  async resign(): Promise<void> {
    await this.lease?.revoke();
    this.lease = undefined;
  }
}
