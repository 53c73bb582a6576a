/** The rounds of subscriptions: jobs of the process `ingest`, the times when they take place, and the dates that they search. */

import type { TilewrightError } from '../errors.js';
import type { IngestResults } from '../ingest/index.js';
import { hasEnded, type JobService, jobNotFound, type Process } from '../jobs/index.js';
import { parseDatetime, writeDatetime } from '../query/index.js';
import type { JobRecord, JobStatus } from '../storage/index.js';
import { badInterval, roundRunning, subscriptionNotFound } from './errors.js';
import {
  isRunning,
  type Round,
  type RoundResult,
  type StoredSubscription,
  type SubscriptionInputs,
  type SubscriptionRecord,
  type SubscriptionStore,
} from './store.js';

const DAY_MS = 86_400_000;
const UNITS_MS = { d: DAY_MS, h: 3_600_000, m: 60_000 };
const MIN_EVERY_MS = UNITS_MS.m;
const MAX_EVERY_MS = 30 * DAY_MS;

/** Archives deliver scenes late, and process them again, so later rounds search this long before the last success. */
export const LOOKBACK_MS = 30 * DAY_MS;

/** The texts that `parseEvery` accepts, for the OpenAPI document. */
export const EVERY_PATTERN = [
  '^(([1-9]|[12][0-9]|30)d',
  '([1-9][0-9]?|[1-6][0-9]{2}|7[01][0-9]|720)h',
  '([1-9][0-9]{0,3}|[1-3][0-9]{4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)m)$',
].join('|');

/** Parses "15m", "6h" or "30d". Throws TW_SUBSCRIPTION_EVERY. */
export function parseEvery(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})([dhm])$/.exec(text) ?? [];
  const every = Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
  if (!(every >= MIN_EVERY_MS && every <= MAX_EVERY_MS)) throw badInterval(text);
  return every;
}

/** The text of an interval in the largest unit that divides it. */
export function formatEvery(every: number): string {
  const [unit, length] = Object.entries(UNITS_MS).find(([, length]) => every % length === 0) ?? [
    'm',
    UNITS_MS.m,
  ];
  return `${every / length}${unit}`;
}

/** The first time after `now` on the grid of `planned`, so that missed rounds are not made up for one by one. */
export function nextRunTime(planned: number, every: number, now: number): number {
  return planned + (Math.floor(Math.max(0, now - planned) / every) + 1) * every;
}

/**
 * The dates that a round searches. A search whose end is open begins LOOKBACK_MS before the start of the last success. All other searches,
 * and all before the first success, are complete.
 */
export function roundDatetime(
  datetime: string | undefined,
  succeededAt: number | undefined,
): string | undefined {
  const { start = -Infinity, end } =
    datetime === undefined ? {} : parseDatetime(datetime, { dates: 'periods' });
  if (succeededAt === undefined || end !== undefined) return datetime;
  return writeDatetime({ start: Math.max(start, succeededAt - LOOKBACK_MS), end: undefined });
}

/** Longer messages are truncated. */
const MAX_MESSAGE_LENGTH = 500;

interface RoundsOptions {
  store: SubscriptionStore;
  jobs: JobService;
  ingest: Process;
  now: () => number;
  /** Called when the end of a round is recorded. */
  onEnd?: (status: JobStatus) => void;
}

/**
 * Invariants: a round starts only if the last one has ended, by a compare-and-set of the record, which names the round before its job
 * exists. The idempotency key of the job contains the id of the subscription and the planned time, so a round has one job, even if
 * several nodes submit it, or if a node submits it again after a crash.
 */
export class SubscriptionRounds {
  constructor(private readonly options: RoundsOptions) {}

  /** The record with the state of the job of its last round, which may not be stored yet. */
  async current(record: SubscriptionRecord): Promise<SubscriptionRecord> {
    const { round } = record;
    if (!isRunning(round) || round.job === undefined) return record;
    const job = await this.jobOf(round.job);
    if (!job) return failedRound(record, round, jobNotFound(round.job), this.options.now());
    if (!hasEnded(job))
      return job.status === round.status ? record : { ...record, round: { ...round, status: job.status } };
    return endedRound(record, round, job);
  }

  /** Stores the end of the last round, if its job has ended. Returns undefined if the record has changed in the meantime. */
  async settle(stored: StoredSubscription): Promise<StoredSubscription | undefined> {
    const record = await this.current(stored.record);
    if (!isRunning(stored.record.round) || isRunning(record.round)) return stored;
    const replaced = await this.options.store.replace(record, stored.revision);
    if (replaced) this.options.onEnd?.(record.round!.status);
    return replaced;
  }

  /** Starts a round now. Throws TW_SUBSCRIPTION_NOT_FOUND, TW_SUBSCRIPTION_RUNNING and the errors of `submit`. */
  async startNow(id: string): Promise<JobRecord> {
    for (;;) {
      const stored = await this.settle(await this.options.store.get(id));
      if (stored && isRunning(stored.record.round)) throw roundRunning(id, stored.record.round.job);
      const claimed = stored && (await this.claim(stored, this.options.now()));
      if (claimed) return this.submit(claimed.record);
    }
  }

  /**
   * Does what is due for a subscription: records the end of its last round, submits a round again whose node stopped before its job
   * was known, and starts the next one. Does nothing if another node changes the record at the same time. Throws the errors of `submit`.
   */
  async advance(stored: StoredSubscription): Promise<void> {
    const { round } = stored.record;
    if (isRunning(round) && round.job === undefined) {
      await this.submit(stored.record);
      return;
    }
    const settled = await this.settle(stored);
    if (!settled || isRunning(settled.record.round)) return;
    const { state, every, nextRunAt } = settled.record;
    const now = this.options.now();
    // A time beyond the next interval was planned while a clock was wrong.
    const isDue = nextRunAt <= now || nextRunAt > now + every;
    if (state === 'paused' || !isDue) return;
    const claimed = await this.claim(settled, Math.min(nextRunAt, now));
    if (claimed) await this.submit(claimed.record);
  }

  /** Records that a round begins. Returns undefined if the record has changed in the meantime. */
  private claim(
    { record, revision }: StoredSubscription,
    planned: number,
  ): Promise<StoredSubscription | undefined> {
    const now = this.options.now();
    const { every, nextRunAt } = record;
    const isAhead = nextRunAt > now && nextRunAt <= now + every;
    const next = isAhead ? nextRunAt : nextRunTime(Math.min(nextRunAt, now), every, now);
    const round: Round = { planned, startedAt: now, status: 'accepted' };
    return this.options.store.replace({ ...record, round, nextRunAt: next }, revision);
  }

  /**
   * Starts the job of a claimed round, or finds the job that was started before. An error leaves the round to the next check. Throws
   * the errors of `JobService.startIdempotent`.
   */
  private async submit(record: SubscriptionRecord): Promise<JobRecord> {
    const { jobs, ingest, store } = this.options;
    const { id, round } = record;
    const { planned } = round!;
    // A header of a request cannot have a space, so no client has this key.
    const request = { key: `subscription ${id} ${planned}`, digest: id };
    const { job } = await jobs.startIdempotent(ingest, roundInputs(record, round!.startedAt), { request });
    const withJob = (latest: SubscriptionRecord) =>
      latest.round?.planned === planned && latest.round.job === undefined
        ? { ...latest, round: { ...latest.round, job: job.id, status: job.status } }
        : latest;
    await store.update(id, withJob).catch((error) => {
      // It was removed in the meantime, and its job continues.
      if (!subscriptionNotFound.is(error)) throw error;
    });
    return job;
  }

  /** Undefined if the job has expired. */
  private async jobOf(id: string): Promise<JobRecord | undefined> {
    try {
      return await this.options.jobs.get(id);
    } catch (error) {
      if (!jobNotFound.is(error)) throw error;
      return undefined;
    }
  }
}

/** The inputs of the job of a round. */
function roundInputs({ inputs, succeededAt }: SubscriptionRecord, now: number): SubscriptionInputs {
  const last = succeededAt === undefined ? undefined : Math.min(succeededAt, now);
  const datetime = roundDatetime(inputs.stac.datetime, last);
  return { ...inputs, stac: { ...inputs.stac, ...(datetime !== undefined && { datetime }) } };
}

function endedRound(record: SubscriptionRecord, round: Round, job: JobRecord): SubscriptionRecord {
  const results = job.results as IngestResults | undefined | null;
  const { status, error, finished = job.updated } = job;
  const ended: Round = {
    ...round,
    status,
    finishedAt: finished,
    ...(results && { result: resultOf(results) }),
    ...(error && { error: truncated(error) }),
  };
  const isComplete =
    status === 'successful' &&
    results &&
    hasAllScenes(results, record.inputs.stac.limit) &&
    // An archive that has found nothing so far may be wrong, or not filled yet.
    (record.succeededAt !== undefined || results.scenes.length > 0);
  return { ...record, round: ended, ...(isComplete && { succeededAt: round.startedAt }) };
}

function failedRound(
  record: SubscriptionRecord,
  round: Round,
  { code, message }: TilewrightError,
  finishedAt: number,
): SubscriptionRecord {
  return {
    ...record,
    round: { ...round, status: 'failed', finishedAt, error: truncated({ code, message }) },
  };
}

const truncated = ({ code, message }: { code: string; message: string }) => ({
  code,
  message: message.slice(0, MAX_MESSAGE_LENGTH),
});

function resultOf({ scenes, failed }: IngestResults): RoundResult {
  const ingested = scenes.filter(({ unchanged }) => !unchanged);
  return {
    ingested: ingested.length,
    unchanged: scenes.length - ingested.length,
    failed: failed.length,
    tiles: ingested.reduce((sum, { tiles }) => sum + tiles, 0),
  };
}

/** False if scenes have failed, or if the limit may have cut off others: the next round must search for them again. */
function hasAllScenes({ scenes, failed, skipped = [] }: IngestResults, limit = Infinity): boolean {
  return failed.length === 0 && scenes.length + skipped.length < limit;
}
