/** The subscriptions of a node, or of all nodes of a cluster, and the scheduler that one node runs. */

import { createHash } from 'node:crypto';
import { PeriodicTask } from '../async/index.js';
import { type CoordinationStore, compareAndSet, Lease, readKey } from '../coordination/index.js';
import { messageOf } from '../errors.js';
import { checkStacSource } from '../ingest/index.js';
import type { JobService, Process } from '../jobs/index.js';
import { checkBbox } from '../query/index.js';
import type { HostPolicy } from '../remote/index.js';
import type { JobRecord, JobStatus } from '../storage/index.js';
import { nextRunTime, parseEvery, SubscriptionRounds } from './rounds.js';
import {
  type SubscriptionInputs,
  type SubscriptionRecord,
  type SubscriptionState,
  SubscriptionStore,
} from './store.js';

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

const CHECK_INTERVAL_MS = 5000;

interface SchedulerOptions {
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
class SubscriptionScheduler {
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

interface SubscriptionsOptions {
  /** Opens the coordination store at the first use. */
  open: () => Promise<CoordinationStore>;
  jobs: JobService;
  /** The process `ingest`. */
  ingest: Process;
  /** Hosts that scenes may be fetched from; none by default. */
  hosts?: HostPolicy | undefined;
  /** Id of this node. */
  self: string;
  /** True if this node runs rounds that are due, as servers do. */
  isScheduling?: boolean | undefined;
  /** Called when the end of a round is recorded. */
  onEnd?: (status: JobStatus) => void;
  /** Called with errors of background work, which is retried. */
  onFailure: (error: unknown) => void;
  /** The clock, and the interval of checks in ms, for tests. */
  now?: () => number;
  intervalMs?: number;
}

export interface SubscriptionRequest {
  name?: string;
  every: string;
  inputs: SubscriptionInputs;
}

/** Characters of the derived id before its digest, and of the digest. */
const MAX_STEM_LENGTH = 40;
const DIGEST_LENGTH = 6;

/** Invariant: a subscription changes only through a compare-and-set of its record, so all nodes may change it. */
export class Subscriptions {
  private readonly store: SubscriptionStore;
  private readonly rounds: SubscriptionRounds;
  private readonly scheduler: SubscriptionScheduler | undefined;
  private readonly now: () => number;

  constructor(private readonly options: SubscriptionsOptions) {
    const { open, isScheduling, now = Date.now } = options;
    this.now = now;
    this.store = new SubscriptionStore(open);
    this.rounds = new SubscriptionRounds({ ...options, now, store: this.store });
    if (isScheduling)
      this.scheduler = new SubscriptionScheduler({ ...options, store: this.store, rounds: this.rounds });
  }

  /** See `SubscriptionScheduler.oldestSuccessAt`. */
  get oldestSuccessAt(): number | undefined {
    return this.scheduler?.oldestSuccessAt;
  }

  /** Stops the scheduler; another node, or the next process, continues. */
  async close(): Promise<void> {
    await this.scheduler?.close();
  }

  /**
   * Creates a subscription whose first round is due now. Throws TW_SUBSCRIPTION_EXISTS, _LIMIT and _EVERY, and the errors of
   * `checkStacSource` and `checkBbox`.
   */
  async create({ name, every, inputs }: SubscriptionRequest): Promise<SubscriptionRecord> {
    checkStacSource(inputs.stac, this.options.hosts);
    if (inputs.bbox) checkBbox(inputs.bbox);
    const now = this.now();
    const record: SubscriptionRecord = {
      id: name ?? idOf(inputs),
      created: now,
      inputs,
      every: parseEvery(every),
      state: 'active',
      nextRunAt: now,
    };
    await this.store.create(record);
    return record;
  }

  /** All subscriptions in the order of their ids. */
  async list(): Promise<SubscriptionRecord[]> {
    const all = await this.store.all();
    return Promise.all(all.map(({ record }) => this.rounds.current(record)));
  }

  /** Throws TW_SUBSCRIPTION_NOT_FOUND, like the other methods with an id. */
  async get(id: string): Promise<SubscriptionRecord> {
    return this.rounds.current((await this.store.get(id)).record);
  }

  /** Pauses, resumes, or changes the interval. A round that is overdue stays due. Throws TW_SUBSCRIPTION_EVERY. */
  async change(
    id: string,
    { state, every: text }: { state?: SubscriptionState; every?: string },
  ): Promise<SubscriptionRecord> {
    const every = text === undefined ? undefined : parseEvery(text);
    const now = this.now();
    const { record } = await this.store.update(id, (record) => ({
      ...record,
      ...(state && { state }),
      ...(every !== undefined && {
        every,
        nextRunAt:
          record.nextRunAt <= now
            ? record.nextRunAt
            : nextRunTime(record.round?.planned ?? record.created, every, now),
      }),
    }));
    return this.rounds.current(record);
  }

  /** Removes a subscription. The job of a running round continues. */
  remove(id: string): Promise<void> {
    return this.store.remove(id);
  }

  /** Starts a round now, also of a paused subscription. Throws TW_SUBSCRIPTION_RUNNING and the errors of `JobService.start`. */
  run(id: string): Promise<JobRecord> {
    return this.rounds.startNow(id);
  }
}

/** An id of the collection or host, and of the search, so that the same search has the same id. */
function idOf(inputs: SubscriptionInputs): string {
  const { collection, stac } = inputs;
  const stem = (collection ?? stac.collections?.[0] ?? new URL(stac.url).hostname)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_STEM_LENGTH)
    .replace(/^-|-$/g, '');
  const digest = createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, DIGEST_LENGTH);
  return stem === '' ? digest : `${stem}-${digest}`;
}
