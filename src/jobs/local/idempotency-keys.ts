/** Keys by which a request that is sent twice starts one job (the header `Idempotency-Key`). */
import { createHash } from 'node:crypto';
import type { Catalogue, CatalogueChange, RequestRecord } from '../../storage/index.js';
import { idempotencyKeyReused } from '../errors.js';

export interface IdempotencyKey {
  /** Chosen by the client. */
  key: string;
  /** Of all that the request asks for. */
  digest: string;
}

/** How long a key is known, ms, and how many keys are. */
export const KEY_TTL_MS = 24 * 3_600_000;
export const MAX_KEYS = 10_000;

export const keyHash = (key: string) => createHash('sha256').update(key).digest('hex');

/** Invariant: `known` are the requests on disk, or on their way there, the oldest first, at most MAX_KEYS. */
export class IdempotencyKeys {
  private constructor(
    private readonly catalogue: Catalogue,
    private readonly known: Map<string, RequestRecord>,
  ) {}

  static async open(catalogue: Catalogue): Promise<IdempotencyKeys> {
    const found: [string, RequestRecord][] = [];
    for await (const { key, record } of catalogue.requests.scan()) if (record) found.push([key, record]);
    found.sort(([, a], [, b]) => a.since - b.since);
    return new IdempotencyKeys(catalogue, new Map(found));
  }

  /** The job that this request has started. Throws TW_JOB_KEY_REUSED where the key was that of another one. */
  find({ key, digest }: IdempotencyKey, now = Date.now()): string | undefined {
    const record = this.known.get(keyHash(key));
    if (!record || record.since <= now - KEY_TTL_MS) return undefined;
    if (record.digest !== digest) throw idempotencyKeyReused(record.job);
    return record.job;
  }

  /** Changes that keep the key together with its job, and forget those that `expire` does. */
  add({ key, digest }: IdempotencyKey, job: string, now = Date.now()): CatalogueChange[] {
    const name = keyHash(key);
    const record = { job, digest, since: now };
    this.known.delete(name);
    this.known.set(name, record);
    return [this.catalogue.requests.set(name, record), ...this.expire(now)];
  }

  /** Undoes `add` for a job that could not be written, so that the request can be made again. */
  remove({ key }: IdempotencyKey, job: string): void {
    const name = keyHash(key);
    if (this.known.get(name)?.job === job) this.known.delete(name);
  }

  /** Forgets keys that are too old or too many, and returns the changes that remove them from disk. */
  expire(now = Date.now()): CatalogueChange[] {
    const changes: CatalogueChange[] = [];
    for (const [old, { since }] of this.known) {
      if (since > now - KEY_TTL_MS && this.known.size <= MAX_KEYS) break;
      this.known.delete(old);
      changes.push(this.catalogue.requests.delete(old));
    }
    return changes;
  }
}
