/** Compares objects of an object store, and local copies of them, with their records. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { storeCorrupt, storeNotFound } from '../errors.js';
import { isIntact } from '../files/index.js';
import type { ObjectStore } from '../object-store/index.js';

/** A fault that `verify` reports. */
export interface Problem {
  /**
   * `missing`: a record's file, a scene's tile or the schema of tiles is missing; `size`, `checksum`: a file differs from its record;
   * `corrupt-record`: a record does not match its own checksum; `no-scene`: no scene names a raw tile; `index`: the
   * index in memory and the record of a tile differ.
   */
  kind: 'missing' | 'size' | 'checksum' | 'corrupt-record' | 'no-scene' | 'index';
  /** Path relative to the data folder, `<table> <key>`, or `object <name> of <table> <key>` of an object store. */
  what: string;
}

/** A file that a record names. */
export interface ExpectedFile {
  path: string;
  bytes: number;
  crc32: number;
  /** The record, as `<table> <key>`. */
  record: string;
  /** True if the record has not been replaced. */
  isCurrent(): Promise<boolean>;
}

const CONCURRENCY = 8;
const RETRY_INTERVAL_MS = 5000;

/**
 * A missing object is looked up again for `missingTimeoutMs` before it is reported: its record may have been replaced, or a replicated
 * store may lag. A damaged local copy is removed, so that it is fetched again.
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

  /** Starts the check of a file; resolves when the next check may start. */
  async check(file: ExpectedFile): Promise<void> {
    if (this.errors.length > 0) throw this.errors[0];
    const run = this.verifyObject(file)
      .then((exists) => {
        if (!exists) this.missing.push(file);
      })
      .catch((error) => {
        this.errors.push(error);
      })
      .finally(() => this.running.delete(run));
    this.running.add(run);
    if (this.running.size >= CONCURRENCY) await Promise.race(this.running);
  }

  /** Waits for all checks, and repeats the checks of missing objects. */
  async end(): Promise<void> {
    await Promise.all(this.running);
    if (this.errors.length > 0) throw this.errors[0];
    let missing = this.missing;
    for (let waitedMs = 0; missing.length > 0; waitedMs += RETRY_INTERVAL_MS) {
      const stillMissing: ExpectedFile[] = [];
      for (const file of missing)
        if ((await file.isCurrent()) && !(await this.verifyObject(file))) stillMissing.push(file);
      missing = stillMissing;
      if (missing.length === 0 || waitedMs >= this.missingTimeoutMs) break;
      await sleep(Math.min(RETRY_INTERVAL_MS, this.missingTimeoutMs));
    }
    for (const { path, record } of missing) this.onProblem('missing', `object ${path} of ${record}`);
  }

  /** Reads an entire object; returns false if it does not exist. */
  private async verifyObject(file: ExpectedFile): Promise<boolean> {
    const { path, bytes, crc32, record } = file;
    const what = `object ${path} of ${record}`;
    let bytesRead = 0;
    try {
      for await (const chunk of await this.objects.stream(path, { crc32 }))
        bytesRead += (chunk as Buffer).length;
    } catch (error) {
      if (storeNotFound.is(error)) return false;
      if (!storeCorrupt.is(error)) throw error;
      this.onProblem(bytesRead === bytes ? 'checksum' : 'size', what);
    }
    this.files++;
    this.bytes += bytesRead;
    const local = join(this.dir, path);
    if (!(await isIntact(local, file))) await rm(local, { force: true });
    return true;
  }
}
