/** The local tile files of a node with an object store, and their eviction. */
import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runInTurns, SerialQueue } from '../async/index.js';
import type { Catalogue } from './catalogue.js';
import { onDisk, orIfMissing } from './disk.js';
import { tileOfFolder } from './file-names.js';
import { pruneEmpty, VERSION_DEPTH } from './files.js';

/** Minimum time for which a requested file stays. */
const MIN_AGE_MS = 10_000;
/** Extra fraction of the limit that an eviction frees, so that not every file causes one. */
const EVICTION_SLACK = 0.01;

interface CachedFile {
  bytes: number;
  /** True if this process has verified the checksum. A power cut may have damaged files that were present at start. */
  isVerified: boolean;
}

interface CacheEntry {
  files: Map<string, CachedFile>;
  bytes: number;
  /** Number of current readers. */
  pins: number;
  /** Not evicted before this time, by `performance.now()`. */
  keepUntil: number;
}

type CacheEntries = Map<string, CacheEntry>;

const emptyEntry = (): CacheEntry => ({ files: new Map(), bytes: 0, pins: 0, keepUntil: 0 });

/** Folders by the minute of their last use: so many can be sorted in steps. */
type FoldersByMinute = Map<number, { folder: string; files: CacheEntry['files']; used: number }[]>;

export interface CacheStats {
  /** Bytes of local files that are also in the object store. */
  bytes: number;
  /** Maximum of `bytes`; undefined if only the reserve of the disk limits them. */
  limit: number | undefined;
  /** Requested files that were local. */
  hits: number;
  /** Requested files that had to be fetched. */
  misses: number;
  /** Version folders that were removed to make room. */
  evicted: number;
}

/**
 * Folders of tile versions and their files. Invariants: each folder here is complete in the object store, because it is added when it
 * was fetched, committed or handed over; `bytes` is the sum of all entries; `ownEntries` and `evictFirst` are in the order of their
 * last use. `evictFirst` has old versions and tiles of other nodes' slots.
 */
export class FileCache {
  hits = 0;
  misses = 0;
  private bytes = 0;
  /** Bytes of files that are being fetched. */
  private reservedBytes = 0;
  private evicted = 0;
  private ownEntries: CacheEntries = new Map();
  private evictFirst: CacheEntries = new Map();
  /** The entries of folders that were present at start, while `load` collects them. */
  private loading: { own: CacheEntries; evictFirst: CacheEntries } | undefined;
  private readonly evicting = new Map<string, Promise<void>>();
  private readonly queue = new SerialQueue();
  private isClosed = false;

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    /** True if this node owns the tile. */
    private readonly isOwn: (tileId: string) => boolean,
    private readonly limit = Infinity,
    private readonly minAgeMs = MIN_AGE_MS,
  ) {}

  /** Number of folders: those with files, and those into which a file is being fetched. */
  get size(): number {
    return this.ownEntries.size + this.evictFirst.size;
  }

  get stats(): CacheStats {
    const { bytes, limit, hits, misses } = this;
    return { bytes, limit: limit === Infinity ? undefined : limit, hits, misses, evicted: this.evicted };
  }

  /** Adds the folders that were present at start, in the order of their last use. */
  async load(): Promise<void> {
    const superseded = new Set<string>();
    for await (const key of this.catalogue.superseded.keys()) superseded.add(key);
    const byMinute: FoldersByMinute = new Map();
    await this.walk('tiles', 0, async (folder) => {
      if (await this.catalogue.pending.has(folder)) return;
      const { files, used } = await this.filesOf(folder);
      if (files.size === 0) return;
      const minute = Math.floor(used / 60_000);
      const folders = byMinute.get(minute);
      if (folders) folders.push({ folder, files, used });
      else byMinute.set(minute, [{ folder, files, used }]);
    });
    if (this.isClosed) return;
    this.loading = { own: new Map(), evictFirst: new Map() };
    const { own, evictFirst } = this.loading;
    await runInTurns(
      this.insert(byMinute, (folder) =>
        superseded.has(folder) || !this.isOwn(tileOfFolder(folder)) ? evictFirst : own,
      ),
    );
    // Folders that came into use in the meantime were used later than all of these.
    for (const [folder, entry] of [...this.ownEntries, ...this.evictFirst]) {
      for (const entries of [own, evictFirst]) {
        const listed = entries.get(folder);
        if (!listed) continue;
        entries.delete(folder);
        for (const [name, file] of listed.files) if (!entry.files.has(name)) this.setFile(entry, name, file);
      }
      (this.isOwn(tileOfFolder(folder)) ? own : evictFirst).set(folder, entry);
    }
    this.bytes = sumOfBytes(own) + sumOfBytes(evictFirst);
    this.ownEntries = own;
    this.evictFirst = evictFirst;
    this.loading = undefined;
  }

  /** Adds folders in the order of their last use, in steps. */
  private *insert(byMinute: FoldersByMinute, entriesOf: (folder: string) => CacheEntries): Generator<void> {
    for (const minute of [...byMinute.keys()].sort((a, b) => a - b))
      for (const { folder, files } of byMinute.get(minute)!.sort((a, b) => a.used - b.used)) {
        const bytes = [...files.values()].reduce((sum, file) => sum + file.bytes, 0);
        entriesOf(folder).set(folder, { ...emptyEntry(), files, bytes });
        yield;
      }
  }

  /** Adds files that were made on this node, after their commit. */
  async add(folders: string[]): Promise<void> {
    for (const folder of folders) {
      const { files } = await this.filesOf(folder);
      const entry = this.entry(folder);
      for (const [name, { bytes }] of files) this.setFile(entry, name, { bytes, isVerified: true });
    }
    await this.makeRoom();
  }

  file(folder: string, name: string): CachedFile | undefined {
    return this.find(folder)?.files.get(name);
  }

  set(folder: string, name: string, file: CachedFile): void {
    this.setFile(this.entry(folder), name, file);
  }

  /** Keeps a folder until the returned function is called, and for the minimum time after that if it `isToBeRead`. */
  pin(folder: string, isToBeRead = true): () => void {
    const entry = this.entry(folder);
    entry.pins++;
    let isHeld = true;
    return () => {
      if (isHeld) entry.pins--;
      isHeld = false;
      if (isToBeRead) entry.keepUntil = performance.now() + this.minAgeMs;
      // No file was fetched, so there is nothing to keep or evict.
      if (entry.pins === 0 && entry.files.size === 0) this.drop(folder, entry);
    };
  }

  /** Resolves when the removal of a folder that is being evicted has ended. */
  async evictionDone(folder: string): Promise<void> {
    await this.evicting.get(folder);
  }

  /** Drops the entries of folders that other code has removed. */
  forget(folders: string[]): void {
    for (const folder of folders) {
      this.loading?.own.delete(folder);
      this.loading?.evictFirst.delete(folder);
      for (const entries of [this.ownEntries, this.evictFirst]) {
        this.bytes -= entries.get(folder)?.bytes ?? 0;
        entries.delete(folder);
      }
    }
  }

  /** Moves folders that no record names any more to those that are evicted first. */
  markEvictFirst(folders: string[]): void {
    for (const folder of folders) {
      const entry = this.ownEntries.get(folder);
      if (!entry) continue;
      this.ownEntries.delete(folder);
      this.evictFirst.set(folder, entry);
    }
  }

  /** Moves folders that were added before the commit of their tiles, of which this node owns some, to those that are evicted last. */
  markCommitted(folders: string[]): void {
    for (const folder of folders) {
      const entry = this.evictFirst.get(folder);
      if (!entry || !this.isOwn(tileOfFolder(folder))) continue;
      this.evictFirst.delete(folder);
      this.ownEntries.set(folder, entry);
    }
  }

  /** True if this many more bytes fit without an eviction. */
  hasRoom(bytes: number): boolean {
    return this.bytes + this.reservedBytes + bytes <= this.limit;
  }

  /** Reserves room for a file that is being fetched. Returns a function that ends the reservation. */
  reserveBytes(bytes: number): () => void {
    this.reservedBytes += bytes;
    return () => {
      this.reservedBytes -= bytes;
    };
  }

  /** Evicts folders if local and reserved bytes exceed the limit. */
  async makeRoom(): Promise<void> {
    const excess = this.bytes + this.reservedBytes - this.limit;
    if (excess > 0) await this.evict(excess + EVICTION_SLACK * this.limit);
  }

  /** Removes the least recently used folders, at least this many bytes if possible. */
  evict(bytes: number): Promise<void> {
    const goal = this.bytes - bytes;
    return this.queue.run(() => this.evictTo(goal));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.queue.idle();
  }

  private async evictTo(goal: number): Promise<void> {
    for (const entries of [this.evictFirst, this.ownEntries])
      for (const [folder, entry] of entries) {
        if (this.bytes <= goal || this.isClosed) return;
        if (entry.files.size === 0 || isInUse(entry) || (await this.catalogue.pending.has(folder))) continue;
        // It may have been requested in the meantime.
        if (isInUse(entry) || entries.get(folder) !== entry) continue;
        this.forget([folder]);
        this.evicted++;
        const removal = this.remove(folder).finally(() => this.evicting.delete(folder));
        this.evicting.set(folder, removal);
        await removal;
      }
  }

  private async remove(folder: string): Promise<void> {
    await onDisk(this.dir, async () => {
      await rm(join(this.dir, folder), { recursive: true, force: true });
      await pruneEmpty(dirname(join(this.dir, folder)), join(this.dir, 'tiles'));
    });
  }

  private find(folder: string): CacheEntry | undefined {
    return this.ownEntries.get(folder) ?? this.evictFirst.get(folder);
  }

  /** Returns or creates the entry of a folder, and marks it as used now. */
  private entry(folder: string, isOwn = this.isOwn(tileOfFolder(folder))): CacheEntry {
    const entry = this.find(folder) ?? emptyEntry();
    this.ownEntries.delete(folder);
    this.evictFirst.delete(folder);
    (isOwn ? this.ownEntries : this.evictFirst).set(folder, entry);
    return entry;
  }

  /** Removes the entry of a folder, unless a new one has replaced it. */
  private drop(folder: string, entry: CacheEntry): void {
    for (const entries of [this.ownEntries, this.evictFirst])
      if (entries.get(folder) === entry) entries.delete(folder);
  }

  private setFile(entry: CacheEntry, name: string, file: CachedFile): void {
    const growth = file.bytes - (entry.files.get(name)?.bytes ?? 0);
    entry.files.set(name, file);
    entry.bytes += growth;
    this.bytes += growth;
  }

  private async walk(path: string, depth: number, visit: (folder: string) => Promise<void>): Promise<void> {
    for (const { name, isFolder } of await this.list(path)) {
      if (this.isClosed || !isFolder) continue;
      const child = `${path}/${name}`;
      if (depth + 1 < VERSION_DEPTH.tiles) await this.walk(child, depth + 1, visit);
      else if (!name.endsWith('.tmp')) await visit(child);
    }
  }

  private async list(path: string): Promise<{ name: string; isFolder: boolean }[]> {
    return onDisk(this.dir, async () => {
      const entries = await orIfMissing(readdir(join(this.dir, path), { withFileTypes: true }), []);
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
    });
  }

  /** The complete files of a folder, and the time of the last use of one. */
  private async filesOf(folder: string): Promise<{ files: Map<string, CachedFile>; used: number }> {
    const files = new Map<string, CachedFile>();
    let used = 0;
    for (const { name } of await this.list(folder)) {
      // It may have been removed. If `stat` fails for another reason, the file is not counted; its reader reports the error.
      const info = await stat(join(this.dir, folder, name)).catch(() => undefined);
      if (!info?.isFile()) continue;
      // `.tmp`: an interrupted fetch of an older version of this program.
      if (!name.endsWith('.tmp')) files.set(name, { bytes: info.size, isVerified: false });
      used = Math.max(used, info.atimeMs, info.mtimeMs);
    }
    return { files, used };
  }
}

function sumOfBytes(entries: CacheEntries): number {
  let sum = 0;
  for (const { bytes } of entries.values()) sum += bytes;
  return sum;
}

const isInUse = ({ pins, keepUntil }: CacheEntry) => pins > 0 || keepUntil > performance.now();
