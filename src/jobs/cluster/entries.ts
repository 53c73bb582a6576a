/**
 * The entries of jobs, which all nodes read: small documents in the coordination store. Objects in the object store complement them: the
 * inputs and, after the end, the complete record and the log.
 */
import {
  type CoordinationStore,
  compareAndSet,
  documentDamaged,
  firstKeyValue,
  type KeyValue,
  parseJsonValue,
  prefixRange,
  readKey,
  retryUntilAnswered,
  type StoredValue,
  scanPrefix,
  type Transaction,
} from '../../coordination/index.js';
import { TilewrightError } from '../../errors.js';
import {
  firstVersionAt,
  type JobRecord,
  type JobStatus,
  type JobSummary,
  jobSummaryOf,
} from '../../storage/index.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { idempotencyKeyReused } from '../errors.js';
import { type IdempotencyKey, KEY_TTL_MS, keyHash } from '../records.js';

export interface JobEntry {
  /** The node that leads the job, or led it last. */
  home: string;
  job: JobSummary;
  /** The folder of the objects of an ended job. */
  folder?: string;
}

export interface StoredJobEntry {
  entry: JobEntry;
  /** Revision of the key. */
  revision: number;
  isLive: boolean;
}

const LIVE_PREFIX = 'jobs/live/';
const ENDED_PREFIX = 'jobs/ended/';
const REQUESTS_PREFIX = 'jobs/requests/';
/** Longer texts of an entry are truncated. */
const MAX_TEXT_LENGTH = 500;
/** Time limit of a change at the coordination store. */
const TIMEOUT_MS = 10_000;
const PAGE_ENTRIES = 200;
const FIRST_PART_MS = 3_600_000;

/** The job that a request has started. */
interface RequestEntry {
  job: string;
  digest: string;
  since: number;
}

/** The summary of a job with short texts. */
export function entrySummaryOf(record: JobRecord): JobSummary {
  const { message, error, ...rest } = jobSummaryOf(record);
  const truncate = (text: string) => text.slice(0, MAX_TEXT_LENGTH);
  return {
    ...rest,
    message: truncate(message),
    ...(error && { error: { ...error, message: truncate(error.message) } }),
  };
}

export class JobEntries {
  constructor(private readonly store: CoordinationStore) {}

  /** Creates the entry of a new job. If the same request has already started a job, returns that one instead. Throws TW_JOB_KEY_REUSED. */
  async create(entry: JobEntry, request?: IdempotencyKey): Promise<{ revision: number } | { known: string }> {
    const key = LIVE_PREFIX + entry.job.id;
    const value = JSON.stringify(entry);
    const known = request && REQUESTS_PREFIX + keyHash(request.key);
    if (!known) {
      const { current } = await compareAndSet(this.store, { key, value, revision: 0 });
      return { revision: current!.modRevision };
    }
    const { digest } = request;
    const mark = JSON.stringify({ job: entry.job.id, digest, since: Date.now() } satisfies RequestEntry);
    for (;;) {
      const before = await readKey(this.store, known);
      const earlier = before && jobOfRequestEntry(before, request);
      if (earlier !== undefined) return { known: earlier };
      const { gets } = await this.transact({
        compare: [{ key: known, modRevision: before?.modRevision ?? 0 }],
        success: [
          { op: 'put', key: known, value: mark },
          { op: 'put', key, value },
          { op: 'get', key: known },
          { op: 'get', key },
        ],
        failure: [
          { op: 'get', key: known },
          { op: 'get', key },
        ],
      });
      const after = firstKeyValue(gets[0]!);
      const job = after && jobOfRequestEntry(after, request);
      if (job === entry.job.id) return { revision: firstKeyValue(gets[1]!)!.modRevision };
      if (job !== undefined) return { known: job };
      // An expired key was deleted in the meantime, so the loop tries again without it.
    }
  }

  private transact(transaction: Transaction) {
    return retryUntilAnswered(TIMEOUT_MS, (timeoutMs) => this.store.transact(transaction, { timeoutMs }));
  }

  /** Removes a job, with the key of its request, if it still has `revision`; false if the job has changed. */
  async withdraw(id: string, revision: number, request?: IdempotencyKey): Promise<boolean> {
    const key = LIVE_PREFIX + id;
    const removed = [key, ...(request ? [REQUESTS_PREFIX + keyHash(request.key)] : [])];
    const { succeeded, gets } = await this.transact({
      compare: [{ key, modRevision: revision }],
      success: [...removed.map((key) => ({ op: 'delete' as const, key })), { op: 'get', key }],
      failure: [{ op: 'get', key }],
    });
    return succeeded || firstKeyValue(gets[0]!) === undefined;
  }

  /** The job that a request has started. Throws TW_JOB_KEY_REUSED. */
  async jobOfRequest(request: IdempotencyKey): Promise<string | undefined> {
    const kv = await readKey(this.store, REQUESTS_PREFIX + keyHash(request.key));
    return kv && jobOfRequestEntry(kv, request);
  }

  async get(id: string): Promise<StoredJobEntry | undefined> {
    const { gets } = await this.store.read([{ key: LIVE_PREFIX + id }, { key: ENDED_PREFIX + id }]);
    const [live, ended] = [firstKeyValue(gets[0]!), firstKeyValue(gets[1]!)];
    if (live) return parseEntry(live, true);
    return ended && parseEntry(ended, false);
  }

  /** Replaces the entry of a job if it still has `revision`; `current` is the entry afterwards. */
  async update(
    entry: JobEntry,
    revision: number,
    timeoutMs = TIMEOUT_MS,
  ): Promise<{ set: boolean; current: StoredJobEntry | undefined }> {
    const key = LIVE_PREFIX + entry.job.id;
    const value = JSON.stringify(entry);
    const { set, current } = await compareAndSet(this.store, { key, value, revision }, timeoutMs);
    return { set, current: current && parseEntry(current, true) };
  }

  /** Replaces the entry of a job that has ended if it still has `revision`. */
  async end(entry: JobEntry, revision: number): Promise<boolean> {
    const { id } = entry.job;
    const [key, ended] = [LIVE_PREFIX + id, ENDED_PREFIX + id];
    const value = JSON.stringify(entry);
    const { succeeded, gets } = await this.transact({
      compare: [{ key, modRevision: revision }],
      success: [
        { op: 'delete', key },
        { op: 'put', key: ended, value },
        { op: 'get', key: ended },
      ],
      failure: [{ op: 'get', key: ended }],
    });
    return succeeded || firstKeyValue(gets[0]!)?.value === value;
  }

  /** Creates the entry of an ended job that has none. */
  async restore(entry: JobEntry): Promise<void> {
    await compareAndSet(this.store, {
      key: ENDED_PREFIX + entry.job.id,
      value: JSON.stringify(entry),
      revision: 0,
    });
  }

  /** Amends the entry of an ended job. */
  async updateEnded(id: string, amend: (entry: JobEntry) => JobEntry): Promise<void> {
    for (;;) {
      const kv = await readKey(this.store, ENDED_PREFIX + id);
      if (!kv) return;
      const value = JSON.stringify(amend(parseEntry(kv, false).entry));
      const { set } = await compareAndSet(this.store, {
        key: ENDED_PREFIX + id,
        value,
        revision: kv.modRevision,
      });
      if (set) return;
    }
  }

  /** The jobs that have not ended. For damaged entries see `all`. */
  async live(onDamaged: OnDamaged = rethrow): Promise<StoredJobEntry[]> {
    const { gets } = await this.store.read([prefixRange(LIVE_PREFIX)]);
    return [...parseEntries(gets[0]!.kvs, true, onDamaged)];
  }

  /**
   * All jobs: first those that have not ended, then the ended ones, each in the order of their ids, which is that of their times.
   * `onDamaged` gets TW_DHT_DOCUMENT_DAMAGED for each damaged entry, which is omitted; by default, the error is thrown.
   */
  async *all(onDamaged: OnDamaged = rethrow): AsyncGenerator<StoredJobEntry> {
    for (const [prefix, live] of [
      [LIVE_PREFIX, true],
      [ENDED_PREFIX, false],
    ] as const)
      for await (const kvs of scanPrefix(this.store, prefix, PAGE_ENTRIES))
        yield* parseEntries(kvs, live, onDamaged);
  }

  /**
   * The jobs that ended, from before the id `before` on, in parts of which each has later ids than the next: first those of the last hour,
   * then of twice the time before it, and so on.
   */
  async *endedBackwards(before: string | undefined): AsyncGenerator<StoredJobEntry[]> {
    let to = before ?? '~';
    const now = Date.now();
    for (let age = FIRST_PART_MS; ; age *= 2) {
      const isLast = age > now;
      const from = isLast ? '' : firstVersionAt(now - age);
      if (from >= to) continue;
      const part: StoredJobEntry[] = [];
      for await (const kvs of scanPrefix(this.store, ENDED_PREFIX, PAGE_ENTRIES, { from, to }))
        part.push(...parseEntries(kvs, false, rethrow));
      yield part;
      if (isLast) return;
      to = from;
    }
  }

  /** Deletes the keys of requests that are too old. */
  async expireRequests(): Promise<void> {
    for await (const kvs of scanPrefix(this.store, REQUESTS_PREFIX, PAGE_ENTRIES))
      for (const kv of kvs) {
        const { since } = parseJsonValue<RequestEntry>(kv, ['since']);
        const { key, modRevision: revision } = kv;
        if (since <= Date.now() - KEY_TTL_MS)
          await compareAndSet(this.store, { key, value: undefined, revision });
      }
  }

  async delete(id: string): Promise<void> {
    await this.store.transact({ success: [{ op: 'delete', key: ENDED_PREFIX + id }] });
  }
}

type OnDamaged = (error: TilewrightError) => void;

const rethrow: OnDamaged = (error) => {
  throw error;
};

function* parseEntries(kvs: KeyValue[], live: boolean, onDamaged: OnDamaged): Generator<StoredJobEntry> {
  for (const kv of kvs) {
    let stored: StoredJobEntry;
    try {
      stored = parseEntry(kv, live);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      onDamaged(error);
      continue;
    }
    yield stored;
  }
}

/** Throws TW_DHT_DOCUMENT_DAMAGED. */
function parseEntry(kv: StoredValue, isLive: boolean): StoredJobEntry {
  const entry = parseJsonValue<JobEntry>(kv, ['home', 'job']);
  if (checkEntry(entry) !== undefined || !kv.key.endsWith(`/${entry.job.id}`)) throw documentDamaged(kv.key);
  return { entry, revision: kv.modRevision, isLive };
}

const checkEntry = messageCheck(
  objectOf(
    {
      home: TEXT,
      job: objectOf({
        id: TEXT,
        process: TEXT,
        status: { enum: ['accepted', 'running', 'successful', 'failed', 'dismissed'] satisfies JobStatus[] },
        created: NUMBER,
        updated: NUMBER,
        message: TEXT,
        tiles: objectOf({ total: NUMBER, done: NUMBER, failed: NUMBER, skipped: NUMBER }),
      }),
    },
    { folder: TEXT },
  ),
);

/** The job of a request; undefined if the request is too old. Throws TW_JOB_KEY_REUSED. */
function jobOfRequestEntry(kv: KeyValue, { digest }: IdempotencyKey): string | undefined {
  const { job, digest: known, since } = parseJsonValue<RequestEntry>(kv, ['job', 'digest', 'since']);
  if (since <= Date.now() - KEY_TTL_MS) return undefined;
  if (known !== digest) throw idempotencyKeyReused(job);
  return job;
}
