/**
 * What all nodes know of each job: a small document in the coordination store, and beside it objects in the shared store: what was asked
 * for, and at the end the whole record and the log.
 */
import {
  type CoordinationStore,
  compareAndSet,
  documentDamaged,
  firstKeyValue,
  type KeyValue,
  parseJsonValue,
  prefixRange,
  retryUntilAnswered,
  type StoredValue,
  scanPrefix,
} from '../../coordination/index.js';
import { TilewrightError } from '../../errors.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import type { JobRecord, JobStatus } from '../../storage/index.js';
import { idempotencyKeyReused } from '../errors.js';
import { type IdempotencyKey, KEY_TTL_MS, keyHash } from '../local/idempotency-keys.js';

/** A record without what may be long. */
export type JobSummary = Omit<JobRecord, 'inputs' | 'given' | 'results' | 'files'>;

export interface JobEntry {
  /** The node that leads the job, or led it at last. */
  home: string;
  job: JobSummary;
  hasResults?: true;
  /** Of a job that has ended: folder of its objects. */
  folder?: string;
}

export interface StoredJobEntry {
  entry: JobEntry;
  /** Of the key. */
  revision: number;
  isLive: boolean;
}

const LIVE_PREFIX = 'jobs/live/';
const ENDED_PREFIX = 'jobs/ended/';
const REQUESTS_PREFIX = 'jobs/requests/';
/** Texts of a document are cut, characters. */
const MAX_TEXT_LENGTH = 500;
/** How long a change waits for the coordination store, ms. */
const TIMEOUT_MS = 10_000;
const PAGE_ENTRIES = 200;

/** Which job a request has started. */
interface RequestEntry {
  job: string;
  digest: string;
  since: number;
}

export function jobSummaryOf(record: JobRecord): JobSummary {
  const {
    inputs: _inputs,
    given: _given,
    results: _results,
    files: _files,
    message,
    error,
    ...rest
  } = record;
  const cut = (text: string) => text.slice(0, MAX_TEXT_LENGTH);
  return {
    ...rest,
    message: cut(message),
    ...(error && { error: { ...error, message: cut(error.message) } }),
  };
}

/** As a record, for those who do not need the rest. */
export function jobRecordOf({ job, hasResults }: JobEntry): JobRecord {
  return { ...job, inputs: undefined, ...(hasResults && { results: null }) };
}

export class JobEntries {
  constructor(private readonly store: CoordinationStore) {}

  /** A new job. Gives the job that the same request has started, and then makes none. Throws TW_JOB_KEY_REUSED. */
  async create(
    document: JobEntry,
    request?: IdempotencyKey,
  ): Promise<{ revision: number } | { known: string }> {
    const key = LIVE_PREFIX + document.job.id;
    const value = JSON.stringify(document);
    const known = request && REQUESTS_PREFIX + keyHash(request.key);
    if (!known) {
      const { current } = await compareAndSet(this.store, { key, value, revision: 0 });
      return { revision: current!.modRevision };
    }
    const { digest } = request;
    const mark = JSON.stringify({ job: document.job.id, digest, since: Date.now() } satisfies RequestEntry);
    for (;;) {
      const before = firstKeyValue((await this.store.read([{ key: known }])).gets[0]!);
      const earlier = before && jobOfRequestEntry(before, request);
      if (earlier !== undefined) return { known: earlier };
      const { gets } = await retryUntilAnswered(TIMEOUT_MS, (timeoutMs) =>
        this.store.transact(
          {
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
          },
          { timeoutMs },
        ),
      );
      const after = firstKeyValue(gets[0]!);
      const job = after && jobOfRequestEntry(after, request);
      if (job === document.job.id) return { revision: firstKeyValue(gets[1]!)!.modRevision };
      if (job !== undefined) return { known: job };
      // An expired key was deleted in the meantime: try again without it.
    }
  }

  /** Removes a job that is as it was at `revision`, with the mark of its request; false if the job has changed. */
  async withdraw(id: string, revision: number, request?: IdempotencyKey): Promise<boolean> {
    const key = LIVE_PREFIX + id;
    const removed = [key, ...(request ? [REQUESTS_PREFIX + keyHash(request.key)] : [])];
    const { succeeded, gets } = await retryUntilAnswered(TIMEOUT_MS, (timeoutMs) =>
      this.store.transact(
        {
          compare: [{ key, modRevision: revision }],
          success: [...removed.map((key) => ({ op: 'delete' as const, key })), { op: 'get', key }],
          failure: [{ op: 'get', key }],
        },
        { timeoutMs },
      ),
    );
    return succeeded || firstKeyValue(gets[0]!) === undefined;
  }

  /** The job that a request has started. Throws TW_JOB_KEY_REUSED. */
  async jobOfRequest(request: IdempotencyKey): Promise<string | undefined> {
    const { gets } = await this.store.read([{ key: REQUESTS_PREFIX + keyHash(request.key) }]);
    const kv = firstKeyValue(gets[0]!);
    return kv && jobOfRequestEntry(kv, request);
  }

  async get(id: string): Promise<StoredJobEntry | undefined> {
    const { gets } = await this.store.read([{ key: LIVE_PREFIX + id }, { key: ENDED_PREFIX + id }]);
    const [live, ended] = [firstKeyValue(gets[0]!), firstKeyValue(gets[1]!)];
    if (live) return parseEntry(live, true);
    return ended && parseEntry(ended, false);
  }

  /** Changes the document of a job, if it is as it was at `revision`; `current` is what is there then. */
  async update(
    document: JobEntry,
    revision: number,
    timeoutMs = TIMEOUT_MS,
  ): Promise<{ set: boolean; current: StoredJobEntry | undefined }> {
    const key = LIVE_PREFIX + document.job.id;
    const value = JSON.stringify(document);
    const { set, current } = await compareAndSet(this.store, { key, value, revision }, timeoutMs);
    return { set, current: current && parseEntry(current, true) };
  }

  /** The same for a job that has ended. */
  async end(document: JobEntry, revision: number): Promise<boolean> {
    const { id } = document.job;
    const [key, ended] = [LIVE_PREFIX + id, ENDED_PREFIX + id];
    const value = JSON.stringify(document);
    const { succeeded, gets } = await retryUntilAnswered(TIMEOUT_MS, (timeoutMs) =>
      this.store.transact(
        {
          compare: [{ key, modRevision: revision }],
          success: [
            { op: 'delete', key },
            { op: 'put', key: ended, value },
            { op: 'get', key: ended },
          ],
          failure: [{ op: 'get', key: ended }],
        },
        { timeoutMs },
      ),
    );
    return succeeded || firstKeyValue(gets[0]!)?.value === value;
  }

  /** Of a job that has ended, what follows later. */
  async updateEnded(id: string, amend: (document: JobEntry) => JobEntry): Promise<void> {
    for (;;) {
      const { gets } = await this.store.read([{ key: ENDED_PREFIX + id }]);
      const kv = firstKeyValue(gets[0]!);
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

  /** Jobs that have not ended. Damaged documents: see `all`. */
  async live(onDamaged: OnDamaged = rethrow): Promise<StoredJobEntry[]> {
    const { gets } = await this.store.read([prefixRange(LIVE_PREFIX)]);
    return [...parseEntries(gets[0]!.kvs, true, onDamaged)];
  }

  /**
   * All that there are, in the order of their ids, which is that of their times. `onDamaged` is called with TW_DHT_DOCUMENT_DAMAGED for
   * each document that is left out; without it, the error is thrown.
   */
  async *all(onDamaged: OnDamaged = rethrow): AsyncGenerator<StoredJobEntry> {
    for (const [prefix, live] of [
      [LIVE_PREFIX, true],
      [ENDED_PREFIX, false],
    ] as const)
      for await (const kvs of scanPrefix(this.store, prefix, PAGE_ENTRIES))
        yield* parseEntries(kvs, live, onDamaged);
  }

  /** Forgets the keys of requests that are too old. */
  async expireRequests(): Promise<void> {
    const { gets } = await this.store.read([prefixRange(REQUESTS_PREFIX)]);
    for (const kv of gets[0]!.kvs) {
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
  if (checkDocument(entry) !== undefined || !kv.key.endsWith(`/${entry.job.id}`))
    throw documentDamaged(kv.key);
  return { entry, revision: kv.modRevision, isLive };
}

const checkDocument = messageCheck(
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

/** Undefined where it was too long ago. Throws TW_JOB_KEY_REUSED. */
function jobOfRequestEntry(kv: KeyValue, { digest }: IdempotencyKey): string | undefined {
  const { job, digest: known, since } = parseJsonValue<RequestEntry>(kv, ['job', 'digest', 'since']);
  if (since <= Date.now() - KEY_TTL_MS) return undefined;
  if (known !== digest) throw idempotencyKeyReused(job);
  return job;
}
