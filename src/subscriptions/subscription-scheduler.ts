import { PeriodicTask } from '../async/index.js';
import type { CoordinationStore } from '../coordination/index.js';
import { messageOf } from '../errors.js';
import { Leadership } from './scheduler-leadership.js';
import type { SubscriptionRecord } from './subscription-record.js';
import type { SubscriptionRounds } from './subscription-rounds.js';
import type { SubscriptionStore } from './subscription-store.js';

const CHECK_INTERVAL_MS = 5000;

export interface SchedulerOptions {
  open: () => Promise<CoordinationStore>;
  store: SubscriptionStore;
  rounds: SubscriptionRounds;
  /** Id of this node. */
  self: string;
  /** Called with errors, after which the work is retried. */
  onFailure: (error: unknown) => void;
  intervalMs?: number;
}

/**
 * Starts the rounds that are due. Invariant: only the leader does it, and checks one subscription after the other; the first check is at
 * the start, so a round that was due while no node ran starts then.
 */
export class SubscriptionScheduler {
  private readonly leadership: Leadership;
  private readonly task: PeriodicTask;
  /** Messages by subscription, so that an error that stays is reported once. */
  private reported = new Map<string, string>();
  private oldest: number | undefined;
  private isClosing = false;

  constructor(private readonly options: SchedulerOptions) {
    const { self, intervalMs = CHECK_INTERVAL_MS, onFailure } = options;
    this.leadership = new Leadership(self);
    this.task = new PeriodicTask(() => this.check(), intervalMs, onFailure, 0);
  }

  /**
   * The earliest last success of all active subscriptions; the creation counts if a subscription had no success. Undefined without
   * active subscriptions, and on nodes that do not lead.
   */
  get oldestSuccessAt(): number | undefined {
    return this.oldest;
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.task.close();
    await this.leadership.resign();
  }

  private async check(): Promise<void> {
    const { open, store, rounds } = this.options;
    if (!(await this.leadership.acquire(await open()))) {
      this.oldest = undefined;
      return;
    }
    const reported = new Map<string, string>();
    const report = (name: string, error: unknown) => {
      const message = messageOf(error);
      reported.set(name, message);
      if (this.reported.get(name) !== message) this.options.onFailure(error);
    };
    const all = await store.all((error) => report(error.message, error));
    for (const stored of all) {
      if (this.isClosing) return;
      // An error must not delay the other subscriptions.
      await rounds.advance(stored).catch((error) => report(stored.record.id, error));
    }
    this.reported = reported;
    this.oldest = oldestSuccess(all.map(({ record }) => record));
  }
}

function oldestSuccess(records: SubscriptionRecord[]): number | undefined {
  const times = records
    .filter(({ state }) => state === 'active')
    .map(({ succeededAt, created }) => succeededAt ?? created);
  return times.length > 0 ? Math.min(...times) : undefined;
}
