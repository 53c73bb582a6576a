/**
 * What all nodes know of each job: a small document in the coordination store, and beside it objects in the shared store: what was asked
 * for, and at the end the whole record and the log.
 */
import {
  type CoordinationStore,
  compareAndSet,
  documentDamaged,
  documentOf,
  type KeyValue,
  only,
  type PutValue,
  pagesOf,
  settle,
  withPrefix,
} from '../../coordination/index.js';
import { TilewrightError } from '../../errors.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import type { JobRecord, JobStatus } from '../../storage/index.js';
import { keyReused } from '../errors.js';
import { KEPT, nameOf, type RequestKey } from '../local/idempotency-keys.js';

/** A record without what may be long. */
export type JobSummary = Omit<JobRecord, 'inputs' | 'given' | 'results' | 'files'>;

export interface JobDocument {
  /** The node that leads the job, or led it at last. */
  home: string;
  job: JobSummary;
  hasResults?: true;
  /** Of a job that has ended: folder of its objects. */
  folder?: string;
}

export interface StoredJob {
  document: JobDocument;
  /** Of the key. */
  revision: number;
  live: boolean;
}

const LIVE = 'jobs/live/';
const ENDED = 'jobs/ended/';
const REQUESTS = 'jobs/requests/';
/** Texts of a document are cut, characters. */
const LONGEST = 500;
/** How long a change waits for the coordination store, ms. */
const PATIENCE = 10_000;
const PAGE = 200;

/** Which job a request has started. */
interface RequestMark {
  job: string;
  digest: string;
  since: number;
}

export function summaryOf(record: JobRecord): JobSummary {
  const {
    inputs: _inputs,
    given: _given,
    results: _results,
    files: _files,
    message,
    error,
    ...rest
  } = record;
  const cut = (text: string) => text.slice(0, LONGEST);
  return {
    ...rest,
    message: cut(message),
    ...(error && { error: { ...error, message: cut(error.message) } }),
  };
}

/** As a record, for those who do not need the rest. */
export function recordOf({ job, hasResults }: JobDocument): JobRecord {
  return { ...job, inputs: undefined, ...(hasResults && { results: null }) };
}

export class JobDocuments {
  constructor(private readonly store: CoordinationStore) {}

  /** A new job. Gives the job that the same request has started, and then makes none. Throws TW_JOB_KEY_REUSED. */
  async add(document: JobDocument, request?: RequestKey): Promise<{ revision: number } | { known: string }> {
    const key = LIVE + document.job.id;
    const value = JSON.stringify(document);
    const known = request && REQUESTS + nameOf(request.key);
    if (!known) {
      const { current } = await compareAndSet(this.store, { key, value, revision: 0 });
      return { revision: current!.modRevision };
    }
    const { digest } = request;
    const mark = JSON.stringify({ job: document.job.id, digest, since: Date.now() } satisfies RequestMark);
    for (;;) {
      const before = only((await this.store.read([{ key: known }])).gets[0]!);
      const earlier = before && requestedJob(before, request);
      if (earlier !== undefined) return { known: earlier };
      const { gets } = await settle(PATIENCE, (patience) =>
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
          { patience },
        ),
      );
      const after = only(gets[0]!);
      const job = after && requestedJob(after, request);
      if (job === document.job.id) return { revision: only(gets[1]!)!.modRevision };
      if (job !== undefined) return { known: job };
      // An expired key was deleted in the meantime: try again without it.
    }
  }

  /** Removes a job that is as it was at `revision`, with the mark of its request; false if the job has changed. */
  async withdraw(id: string, revision: number, request?: RequestKey): Promise<boolean> {
    const key = LIVE + id;
    const removed = [key, ...(request ? [REQUESTS + nameOf(request.key)] : [])];
    const { succeeded, gets } = await settle(PATIENCE, (patience) =>
      this.store.transact(
        {
          compare: [{ key, modRevision: revision }],
          success: [...removed.map((key) => ({ op: 'delete' as const, key })), { op: 'get', key }],
          failure: [{ op: 'get', key }],
        },
        { patience },
      ),
    );
    return succeeded || only(gets[0]!) === undefined;
  }

  /** The job that a request has started. Throws TW_JOB_KEY_REUSED. */
  async requested(request: RequestKey): Promise<string | undefined> {
    const { gets } = await this.store.read([{ key: REQUESTS + nameOf(request.key) }]);
    const kv = only(gets[0]!);
    return kv && requestedJob(kv, request);
  }

  async get(id: string): Promise<StoredJob | undefined> {
    const { gets } = await this.store.read([{ key: LIVE + id }, { key: ENDED + id }]);
    const [live, ended] = [only(gets[0]!), only(gets[1]!)];
    if (live) return storedJob(live, true);
    return ended && storedJob(ended, false);
  }

  /** Changes the document of a job, if it is as it was at `revision`; `current` is what is there then. */
  async change(
    document: JobDocument,
    revision: number,
    patience = PATIENCE,
  ): Promise<{ set: boolean; current: StoredJob | undefined }> {
    const key = LIVE + document.job.id;
    const value = JSON.stringify(document);
    const { set, current } = await compareAndSet(this.store, { key, value, revision }, patience);
    return { set, current: current && storedJob(current, true) };
  }

  /** The same for a job that has ended. */
  async end(document: JobDocument, revision: number): Promise<boolean> {
    const { id } = document.job;
    const [key, ended] = [LIVE + id, ENDED + id];
    const value = JSON.stringify(document);
    const { succeeded, gets } = await settle(PATIENCE, (patience) =>
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
        { patience },
      ),
    );
    return succeeded || only(gets[0]!)?.value === value;
  }

  /** Of a job that has ended, what follows later. */
  async amend(id: string, amend: (document: JobDocument) => JobDocument): Promise<void> {
    for (;;) {
      const { gets } = await this.store.read([{ key: ENDED + id }]);
      const kv = only(gets[0]!);
      if (!kv) return;
      const value = JSON.stringify(amend(storedJob(kv, false).document));
      const { set } = await compareAndSet(this.store, { key: ENDED + id, value, revision: kv.modRevision });
      if (set) return;
    }
  }

  /** Jobs that have not ended. Damaged documents: see `all`. */
  async live(onDamaged: OnDamaged = rethrow): Promise<StoredJob[]> {
    const { gets } = await this.store.read([withPrefix(LIVE)]);
    return [...storedJobs(gets[0]!.kvs, true, onDamaged)];
  }

  /**
   * All that there are, in the order of their ids, which is that of their times. `onDamaged` is called with TW_DHT_DOCUMENT_DAMAGED for each
   * document that is left out; without it, the error is thrown.
   */
  async *all(onDamaged: OnDamaged = rethrow): AsyncGenerator<StoredJob> {
    for (const [prefix, live] of [
      [LIVE, true],
      [ENDED, false],
    ] as const)
      for await (const kvs of pagesOf(this.store, prefix, PAGE)) yield* storedJobs(kvs, live, onDamaged);
  }

  /** Forgets the keys of requests that are too old. */
  async forgetRequests(): Promise<void> {
    const { gets } = await this.store.read([withPrefix(REQUESTS)]);
    for (const kv of gets[0]!.kvs) {
      const { since } = documentOf<RequestMark>(kv, ['since']);
      const { key, modRevision: revision } = kv;
      if (since <= Date.now() - KEPT) await compareAndSet(this.store, { key, value: undefined, revision });
    }
  }

  async forget(id: string): Promise<void> {
    await this.store.transact({ success: [{ op: 'delete', key: ENDED + id }] });
  }
}

type OnDamaged = (error: TilewrightError) => void;

const rethrow: OnDamaged = (error) => {
  throw error;
};

function* storedJobs(kvs: KeyValue[], live: boolean, onDamaged: OnDamaged): Generator<StoredJob> {
  for (const kv of kvs) {
    let stored: StoredJob;
    try {
      stored = storedJob(kv, live);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      onDamaged(error);
      continue;
    }
    yield stored;
  }
}

/** Throws TW_DHT_DOCUMENT_DAMAGED. */
function storedJob(kv: PutValue, live: boolean): StoredJob {
  const document = documentOf<JobDocument>(kv, ['home', 'job']);
  if (checkDocument(document) !== undefined || !kv.key.endsWith(`/${document.job.id}`))
    throw documentDamaged(kv.key);
  return { document, revision: kv.modRevision, live };
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
function requestedJob(kv: KeyValue, { digest }: RequestKey): string | undefined {
  const { job, digest: known, since } = documentOf<RequestMark>(kv, ['job', 'digest', 'since']);
  if (since <= Date.now() - KEPT) return undefined;
  if (known !== digest) throw keyReused(job);
  return job;
}
