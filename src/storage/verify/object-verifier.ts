/** Compares objects of a shared store, and what lies here of them, with their records. */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { storeCorrupt, storeNotFound } from '../errors.js';
import { checksumFile } from '../object-store/byte-streams.js';
import type { ObjectStore } from '../object-store/object-store.js';
import type { Problem } from './problem.js';

/** A file by its record. */
export interface ExpectedFile {
  path: string;
  bytes: number;
  crc32: number;
  /** The record, as `<table> <key>`. */
  record: string;
  /** Whether it is still the record of its key. */
  isCurrent(): Promise<boolean>;
}

const CONCURRENCY = 8;
/** Between two looks for an object that is missing, ms. */
const RETRY_INTERVAL_MS = 5000;

/**
 * An object that is missing is looked for again for `patience` before it is called lost: its record may have been replaced, or a store that
 * answers from several places may be behind. A file here that is damaged is removed: it will be fetched again.
 */
export class ObjectVerifier {
  files = 0;
  bytes = 0;
  private readonly running = new Set<Promise<void>>();
  private readonly missing: ExpectedFile[] = [];
  private readonly errors: unknown[] = [];

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly onProblem: (kind: Problem['kind'], what: string) => void,
    private readonly missingTimeoutMs: number,
  ) {}

  /** Begins to look at a file; resolves when the next one may be begun. */
  async check(file: ExpectedFile): Promise<void> {
    if (this.errors.length > 0) throw this.errors[0];
    const run = this.verifyObject(file)
      .then((isThere) => {
        if (!isThere) this.missing.push(file);
      })
      .catch((error) => {
        this.errors.push(error);
      })
      .finally(() => this.running.delete(run));
    this.running.add(run);
    if (this.running.size >= CONCURRENCY) await Promise.race(this.running);
  }

  /** Waits for all, and looks again for those that are missing. */
  async end(): Promise<void> {
    await Promise.all(this.running);
    if (this.errors.length > 0) throw this.errors[0];
    let left = this.missing;
    for (let waited = 0; left.length > 0; waited += RETRY_INTERVAL_MS) {
      const still: ExpectedFile[] = [];
      for (const file of left)
        if ((await file.isCurrent()) && !(await this.verifyObject(file))) still.push(file);
      left = still;
      if (left.length === 0 || waited >= this.missingTimeoutMs) break;
      await sleep(Math.min(RETRY_INTERVAL_MS, this.missingTimeoutMs));
    }
    for (const { path, record } of left) this.onProblem('missing', `object ${path} of ${record}`);
  }

  /** Reads an object whole; false where it is not there. */
  private async verifyObject(file: ExpectedFile): Promise<boolean> {
    const { path, bytes, crc32, record } = file;
    const what = `object ${path} of ${record}`;
    let found = 0;
    try {
      for await (const chunk of await this.objects.stream(path, { crc32 })) found += (chunk as Buffer).length;
    } catch (error) {
      if (storeNotFound.is(error)) return false;
      if (!storeCorrupt.is(error)) throw error;
      this.onProblem(found === bytes ? 'checksum' : 'size', what);
    }
    this.files++;
    this.bytes += found;
    await this.removeDamaged(file);
    return true;
  }

  private async removeDamaged({ path, bytes, crc32 }: ExpectedFile): Promise<void> {
    const local = join(this.dir, path);
    // A local copy is optional: without one there is nothing to remove.
    const info = await stat(local).catch(() => undefined);
    if (!info || (info.size === bytes && (await checksumFile(local)) === crc32)) return;
    await rm(local, { force: true });
  }
}
