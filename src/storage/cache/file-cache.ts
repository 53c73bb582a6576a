/** Which files of tiles lie in the data folder of a node whose tiles are in a shared store, and which of them go when room is needed. */

import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SerialQueue } from '../../async/index.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import { onDisk } from '../errors.js';
import { VERSION_DEPTH } from '../files/version-folder.js';

/** Who has asked for a file has it for so long at least, ms. */
const MIN_AGE_MS = 10_000;
/** Where room is made, this share of the limit becomes free, so that it need not be made for every file. */
const EVICTION_SLACK = 0.01;

interface CachedFile {
  bytes: number;
  /** This process has seen that its checksum fits: what lay there at start may be of a power cut. */
  isVerified: boolean;
}

interface CacheEntry {
  files: Map<string, CachedFile>;
  bytes: number;
  /** Who reads it now. */
  pins: number;
  /** It stays until then, by `performance.now()`. */
  keepUntil: number;
}

export interface CacheStats {
  /** Bytes that files take which are in the shared store as well. */
  bytes: number;
  /** The most that they may take; undefined where only the reserve of the disk bounds them. */
  limit: number | undefined;
  /** Files that were wanted and were here. */
  hits: number;
  /** Files that were wanted and had to be fetched. */
  misses: number;
  /** Version folders that were removed to make room. */
  evicted: number;
}

/**
 * Folders of tile versions, with what is in each. Invariants: a folder that is named here is in the shared store as a whole, since
 * it is named when it was fetched or committed; `bytes` is the sum of all entries; the entries of `own` and of `spare` are in the
 * order of their last use. `spare` are old versions and tiles of other nodes' slots; they go first.
 */
export class FileCache {
  hits = 0;
  misses = 0;
  private bytes = 0;
  /** Bytes of files that are being fetched. */
  private reservedBytes = 0;
  private evicted = 0;
  private readonly ownEntries = new Map<string, CacheEntry>();
  private readonly evictFirst = new Map<string, CacheEntry>();
  private readonly evicting = new Map<string, Promise<void>>();
  private readonly queue = new SerialQueue();
  private isClosed = false;

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    /** Whether this node answers for a tile. */
    private readonly isOwn: (tileId: string) => boolean,
    private readonly limit = Infinity,
    private readonly minAgeMs = MIN_AGE_MS,
  ) {}

  /** Folders that are named here: those with files, and those that somebody is about to fetch into. */
  get size(): number {
    return this.ownEntries.size + this.evictFirst.size;
  }

  get stats(): CacheStats {
    const { bytes, limit, hits, misses } = this;
    return { bytes, limit: limit === Infinity ? undefined : limit, hits, misses, evicted: this.evicted };
  }

  /** Names what lies there from before, by the time of its last use. */
  async load(): Promise<void> {
    const superseded = new Set<string>();
    for await (const key of this.catalogue.superseded.keys()) superseded.add(key);
    const found: { folder: string; files: Map<string, CachedFile>; used: number }[] = [];
    await this.walk('tiles', 0, async (folder) => {
      // What is used already is known.
      if (
        this.ownEntries.has(folder) ||
        this.evictFirst.has(folder) ||
        (await this.catalogue.pending.has(folder))
      )
        return;
      const { files, used } = await this.filesOf(folder);
      if (files.size > 0) found.push({ folder, files, used });
    });
    if (this.isClosed) return;
    found.sort((a, b) => a.used - b.used);
    // What is used already has come later than all of these.
    const used = [...this.ownEntries, ...this.evictFirst];
    this.ownEntries.clear();
    this.evictFirst.clear();
    for (const { folder, files } of found) {
      const entry = this.entry(folder, !superseded.has(folder) && this.isOwn(tileOf(folder)));
      for (const [name, file] of files) this.note(entry, name, file);
    }
    for (const [folder, entry] of used) {
      this.forget([folder]);
      (this.isOwn(tileOf(folder)) ? this.ownEntries : this.evictFirst).set(folder, entry);
      this.bytes += entry.bytes;
    }
  }

  /** Files that were made here, when their commit is done. */
  async add(folders: string[]): Promise<void> {
    for (const folder of folders) {
      const { files } = await this.filesOf(folder);
      const entry = this.entry(folder);
      for (const [name, { bytes }] of files) this.note(entry, name, { bytes, isVerified: true });
    }
    await this.makeRoom();
  }

  /** What is known of a file. */
  file(folder: string, name: string): CachedFile | undefined {
    return (this.ownEntries.get(folder) ?? this.evictFirst.get(folder))?.files.get(name);
  }

  set(folder: string, name: string, file: CachedFile): void {
    this.note(this.entry(folder), name, file);
  }

  /** Until the function is called that it returns, the folder stays; where somebody is to read it then, for a while longer. */
  pin(folder: string, isToBeRead = true): () => void {
    const entry = this.entry(folder);
    entry.pins++;
    let isHeld = true;
    return () => {
      if (isHeld) entry.pins--;
      isHeld = false;
      if (isToBeRead) entry.keepUntil = performance.now() + this.minAgeMs;
      // No file was fetched, so that there is nothing to keep or to evict.
      if (entry.pins === 0 && entry.files.size === 0) this.drop(folder, entry);
    };
  }

  /** Resolves when a folder that is just being removed is gone. */
  async evictionDone(folder: string): Promise<void> {
    await this.evicting.get(folder);
  }

  /** Folders that others have removed. */
  forget(folders: string[]): void {
    for (const folder of folders)
      for (const entries of [this.ownEntries, this.evictFirst]) {
        this.bytes -= entries.get(folder)?.bytes ?? 0;
        entries.delete(folder);
      }
  }

  /** Folders that no record names any more. */
  markEvictFirst(folders: string[]): void {
    for (const folder of folders) {
      const entry = this.ownEntries.get(folder);
      if (!entry) continue;
      this.ownEntries.delete(folder);
      this.evictFirst.set(folder, entry);
    }
  }

  /** Whether so much more fits without removing anything. */
  hasRoom(bytes: number): boolean {
    return this.bytes + this.reservedBytes + bytes <= this.limit;
  }

  /** Counts bytes of a file that is being fetched, so that fetches at one time do not take the same room. Returns how to stop counting. */
  reserveBytes(bytes: number): () => void {
    this.reservedBytes += bytes;
    return () => {
      this.reservedBytes -= bytes;
    };
  }

  /** Makes room for what is here and expected, as far as there is something to remove. */
  async makeRoom(): Promise<void> {
    const tooMuch = this.bytes + this.reservedBytes - this.limit;
    if (tooMuch > 0) await this.evict(tooMuch + EVICTION_SLACK * this.limit);
  }

  /** Removes what was not used for longest, at least so many bytes if there are. */
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
        // Somebody may have come meanwhile.
        if (isInUse(entry) || entries.get(folder) !== entry) continue;
        this.forget([folder]);
        this.evicted++;
        const going = this.remove(folder).finally(() => this.evicting.delete(folder));
        this.evicting.set(folder, going);
        await going;
      }
  }

  private async remove(folder: string): Promise<void> {
    await onDisk(this.dir, async () => {
      await rm(join(this.dir, folder), { recursive: true, force: true });
      // A folder above that has something else in it stays, and so does one that is just being used.
      for (let at = dirname(folder); at.includes('/'); at = dirname(at))
        if (!(await rmdir(join(this.dir, at)).then(yes, isNotEmpty))) return;
    });
  }

  /** The entry of a folder, which counts as used now. */
  private entry(folder: string, isOwn = this.isOwn(tileOf(folder))): CacheEntry {
    const entry = this.ownEntries.get(folder) ??
      this.evictFirst.get(folder) ?? {
        files: new Map<string, CachedFile>(),
        bytes: 0,
        pins: 0,
        keepUntil: 0,
      };
    this.ownEntries.delete(folder);
    this.evictFirst.delete(folder);
    (isOwn ? this.ownEntries : this.evictFirst).set(folder, entry);
    return entry;
  }

  /** Removes the entry of a folder, unless another one has taken its place. */
  private drop(folder: string, entry: CacheEntry): void {
    for (const entries of [this.ownEntries, this.evictFirst])
      if (entries.get(folder) === entry) entries.delete(folder);
  }

  private note(entry: CacheEntry, name: string, file: CachedFile): void {
    const more = file.bytes - (entry.files.get(name)?.bytes ?? 0);
    entry.files.set(name, file);
    entry.bytes += more;
    this.bytes += more;
  }

  private async walk(path: string, depth: number, visit: (folder: string) => Promise<void>): Promise<void> {
    for (const { name, isFolder } of await this.list(path)) {
      if (this.isClosed || !isFolder) continue;
      const child = `${path}/${name}`;
      if (depth + 1 < VERSION_DEPTH) await this.walk(child, depth + 1, visit);
      else if (!name.endsWith('.tmp')) await visit(child);
    }
  }

  private async list(path: string): Promise<{ name: string; isFolder: boolean }[]> {
    return onDisk(this.dir, async () => {
      try {
        const entries = await readdir(join(this.dir, path), { withFileTypes: true });
        return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
        throw error;
      }
    });
  }

  /** The whole files of a folder, and when one was last used. */
  private async filesOf(folder: string): Promise<{ files: Map<string, CachedFile>; used: number }> {
    const files = new Map<string, CachedFile>();
    let used = 0;
    for (const { name } of await this.list(folder)) {
      // It may be removed just now. A file that cannot be looked at for another reason is not counted; its reader reports why.
      const info = await stat(join(this.dir, folder, name)).catch(() => undefined);
      if (!info?.isFile()) continue;
      // A fetch of an older version that was cut off.
      if (!name.endsWith('.tmp')) files.set(name, { bytes: info.size, isVerified: false });
      used = Math.max(used, info.atimeMs, info.mtimeMs);
    }
    return { files, used };
  }
}

const isInUse = ({ pins, keepUntil }: CacheEntry) => pins > 0 || keepUntil > performance.now();

/** `tiles/<grid>/<first 3>/<geocode>/<tile id>/<version>` */
const tileOf = (folder: string) => folder.split('/')[4]!;

const yes = () => true;

function isNotEmpty(error: NodeJS.ErrnoException): boolean {
  if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code ?? '')) return false;
  throw error;
}
