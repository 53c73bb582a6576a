/** Idempotency keys (the header `Idempotency-Key`): a request that is sent twice starts one job. */
import { createHash } from 'node:crypto';
import type { Catalogue, CatalogueChange, RequestRecord } from '../storage/index.js';
import { idempotencyKeyReused } from './errors.js';

export interface IdempotencyKey {
  /** Chosen by the client. */
  key: string;
  /** Digest of everything that the request asks for. */
  digest: string;
}

export const KEY_TTL_MS = 24 * 3_600_000;
export const MAX_KEYS = 10_000;

export const keyHash = (key: string) => createHash('sha256').update(key).digest('hex');

/** Invariant: `known` has the requests that are on disk or being written, the oldest first, at most MAX_KEYS. */
export class IdempotencyKeys {
  private constructor(
    private readonly catalogue: Catalogue,
    private readonly known: Map<string, RequestRecord>,
  ) {}

  static async open(catalogue: Catalogue): Promise<IdempotencyKeys> {
    const records: [string, RequestRecord][] = [];
    for await (const { key, record } of catalogue.requests.scan()) if (record) records.push([key, record]);
    records.sort(([, a], [, b]) => a.since - b.since);
    return new IdempotencyKeys(catalogue, new Map(records));
  }

  /** The job that this request has started. Throws TW_JOB_KEY_REUSED if another request has used the key. */
  find({ key, digest }: IdempotencyKey, now = Date.now()): string | undefined {
    const record = this.known.get(keyHash(key));
    if (!record || record.since <= now - KEY_TTL_MS) return undefined;
    if (record.digest !== digest) throw idempotencyKeyReused(record.job);
    return record.job;
  }

  /** Changes that store the key together with its job, and the changes of `expire`. */
  add({ key, digest }: IdempotencyKey, job: string, now = Date.now()): CatalogueChange[] {
    const name = keyHash(key);
    const record = { job, digest, since: now };
    this.known.delete(name);
    this.known.set(name, record);
    return [this.catalogue.requests.set(name, record), ...this.expire(now)];
  }

  /** Undoes `add` for a job that could not be written, so that the request can be repeated. */
  remove({ key }: IdempotencyKey, job: string): void {
    const name = keyHash(key);
    if (this.known.get(name)?.job === job) this.known.delete(name);
  }

  /** Forgets keys that are too old or too many; returns the changes that remove them from disk. */
  expire(now = Date.now()): CatalogueChange[] {
    const changes: CatalogueChange[] = [];
    for (const [name, { since }] of this.known) {
      if (since > now - KEY_TTL_MS && this.known.size <= MAX_KEYS) break;
      this.known.delete(name);
      changes.push(this.catalogue.requests.delete(name));
    }
    return changes;
  }
}
