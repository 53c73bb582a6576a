/** The column index on disk: a snapshot, and a log of the commits since. Both make it quick to load. */
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toArray } from '../../async/index.js';
import { TilewrightError } from '../../errors.js';
import type { Catalogue, CatalogueChange, IndexLogRecord, ScanResult } from '../catalogue.js';
import { type DiskReserve, onDisk } from '../disk.js';
import type { TileRecord } from '../records.js';
import { ColumnIndex } from './column-index.js';
import { UnusableFile } from './parts-file.js';
import { SnapshotFolder } from './snapshot.js';

const INDEX_FOLDER = 'columns';
const LOAD_CHUNK_RECORDS = 5_000;
/** A snapshot is written after this many changed tiles, or this many commits. */
const MAX_UNSAVED_TILES = 20_000;
const MAX_UNSAVED_COMMITS = 1_000;

/** How the index was loaded at open. */
export interface IndexLoad {
  from: 'snapshot' | 'catalogue';
  /** The reason why an existing snapshot could not be used. */
  reason?: string;
}

/**
 * Each commit that changes tiles has a number; its batch also writes a log record with that number, which names those tiles. A
 * snapshot has the tiles as of one commit. The index is loaded from a snapshot; every tile that a later commit names is then read
 * from the table `tiles`. A snapshot is used only if the log record of its commit still exists with the same tag (otherwise
 * the catalogue is another one, such as a restored one), and none of the following records is missing. Otherwise the entire
 * table is read.
 *
 * Invariants: the records in the log are consecutive; the first is that of the stored snapshot or an earlier one; the last
 * is that of `head`, the last commit that the index contains (outside of `CommitApplier.apply`).
 */
export class PersistentIndex {
  readonly index = new ColumnIndex();
  /** TW_STORAGE_CORRUPT errors of damaged tile records, by id. These tiles are not in the index. */
  readonly damaged = new Map<string, TilewrightError>();
  /** Error of the last attempt to write a snapshot; undefined if it succeeded. */
  snapshotError: unknown;
  load: IndexLoad = { from: 'catalogue' };
  private head: { sequence: number; tag: string } | undefined;
  private next: { sequence: number; tag: string } | undefined;
  /** The commit of the stored snapshot; 0 if there is none. */
  private stored = 0;
  private changed = 0;
  private maintenance: Promise<void> | undefined;
  private readonly snapshots: SnapshotFolder;

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly reserve: DiskReserve,
    private readonly maxTiles = MAX_UNSAVED_TILES,
  ) {
    this.snapshots = new SnapshotFolder(join(dir, INDEX_FOLDER));
  }

  /**
   * The number of the newest snapshot's commit if the catalogue ends before it: the catalogue has then lost commits that were on disk.
   * In a cluster the commits are durable elsewhere and are replicated again, so the result is undefined.
   */
  async lostCommit(): Promise<number | undefined> {
    const { commits, replica } = this.catalogue;
    const newest = await onDisk(this.dir, () => this.snapshots.newest());
    if (newest === undefined || !(await replica.isEmpty())) return undefined;
    const [last = keyOf(0)] = await toArray(commits.keys({ reverse: true, limit: 1 }));
    // The name is read first, because nearly always the snapshot is not ahead.
    if (Number.parseInt(newest, 10) <= Number(last)) return undefined;
    try {
      const { header } = await this.snapshots.read(newest);
      return header.sequence > Number(last) ? header.sequence : undefined;
    } catch (error) {
      // A damaged snapshot proves nothing.
      if (error instanceof UnusableFile) return undefined;
      throw error;
    }
  }

  /** Removes the snapshot, so that the next `open` reads the catalogue. */
  removeSnapshot(): Promise<void> {
    return onDisk(this.dir, () => this.snapshots.removeOthers([]));
  }

  /** Loads the index. Called before all other methods except `lostCommit` and `removeSnapshot`. */
  async open(): Promise<void> {
    await onDisk(this.dir, () => mkdir(join(this.dir, INDEX_FOLDER), { recursive: true }));
    const log = await toArray(this.catalogue.commits.scan());
    if (!(await this.loadSnapshot(log))) await this.loadCatalogue(log);
    this.scheduleMaintenance();
  }

  /** The log record for the batch of a commit that adds, changes or removes these tiles. */
  logRecord(tiles: Iterable<string>): CatalogueChange {
    this.next = { sequence: this.head!.sequence + 1, tag: newTag() };
    return this.record(this.next, [...tiles]);
  }

  /** Changes the index after the batch with `logRecord` is on disk. `seq` is the commit's number in a cluster. */
  applied(removed: string[], added: TileRecord[], seq?: number): void {
    if (seq === undefined) {
      this.index.remove(removed);
      this.index.add(added);
    } else this.index.commit(seq, removed, added);
    if (removed.length + added.length === 0) return;
    for (const id of removed) this.damaged.delete(id);
    for (const { id } of added) this.damaged.delete(id);
    this.changed += removed.length + added.length;
    this.head = this.next;
    this.scheduleMaintenance();
  }

  /** Removes a tile whose record is damaged. */
  exclude(id: string, error: TilewrightError): void {
    this.damaged.set(id, error);
    this.index.remove([id]);
  }

  /**
   * Writes a snapshot if anything has changed since the last one. The catalogue has the same content, so a failure causes only a
   * warning.
   */
  async close(): Promise<void> {
    await this.maintenance;
    // After a failed batch only the next open can tell what is on disk.
    if (!this.head || this.head.sequence === this.stored || this.catalogue.writeError !== undefined) return;
    try {
      await this.index.compact();
      await this.save();
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      // Without a warning if the folder has been removed.
      if ((error.cause as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT')
        process.emitWarning(
          `no snapshot of the index was written, so the next start takes longer: ${error.message}`,
        );
    }
  }

  // At open

  /** Loads the index from the newest snapshot, or returns false. Removes all files that are not part of a usable snapshot. */
  private async loadSnapshot(log: ScanResult<IndexLogRecord>[]): Promise<boolean> {
    const newest = await onDisk(this.dir, () => this.snapshots.newest());
    let files: string[] = [];
    let reason: string | undefined;
    try {
      if (newest) files = await this.loadFile(newest, log);
    } catch (error) {
      if (!(error instanceof UnusableFile)) throw error;
      reason = error.message;
    }
    const isLoaded = files.length > 0;
    this.load = { from: isLoaded ? 'snapshot' : 'catalogue', reason };
    if (reason)
      process.emitWarning(`the index is read from the catalogue, because ${newest} of ${this.dir} ${reason}`);
    await onDisk(this.dir, () => this.snapshots.removeOthers(files));
    return isLoaded;
  }

  /** Loads the index from a snapshot, and returns the names of its files. Throws `UnusableFile`. */
  private async loadFile(name: string, log: ScanResult<IndexLogRecord>[]): Promise<string[]> {
    const { header, images, files } = await this.snapshots.read(name);
    const { sequence, tag, damaged } = header;
    const at = log.findIndex(({ key }) => key === keyOf(sequence));
    if (at < 0) throw new UnusableFile('belongs to a commit that the catalogue does not have');
    const since = log.slice(at);
    const outdated = new Set(damaged);
    for (const [i, { key, record, error }] of since.entries()) {
      if (error) throw new UnusableFile(`cannot be brought up to date: ${error.message}`);
      if (key !== keyOf(sequence + i))
        throw new UnusableFile(`cannot be brought up to date: commit ${sequence + i} is missing in the log`);
      if (i === 0 && record.tag !== tag)
        throw new UnusableFile('belongs to another history of the catalogue');
      if (i > 0) for (const id of record.tiles) outdated.add(id);
    }
    this.index.restore(images);
    await this.reload([...outdated]);
    this.stored = sequence;
    this.changed = outdated.size;
    this.head = { sequence: sequence + since.length - 1, tag: since.at(-1)!.record!.tag };
    return files;
  }

  /** Reads some tiles from the catalogue again. */
  private async reload(ids: string[]): Promise<void> {
    const { tiles } = this.catalogue;
    for (let from = 0; from < ids.length; from += LOAD_CHUNK_RECORDS) {
      const chunk = ids.slice(from, from + LOAD_CHUNK_RECORDS);
      this.index.remove(chunk);
      this.addChunk((await tiles.scanMany(chunk)).filter((scanned) => scanned !== undefined));
    }
  }

  /** Reads all tiles, and restarts the log. */
  private async loadCatalogue(log: ScanResult<IndexLogRecord>[]): Promise<void> {
    const { tiles, commits } = this.catalogue;
    this.index.load([]);
    let chunk: ScanResult<TileRecord>[] = [];
    for await (const scanned of tiles.scan()) {
      chunk.push(scanned);
      if (chunk.length < LOAD_CHUNK_RECORDS) continue;
      this.addChunk(chunk);
      chunk = [];
    }
    this.addChunk(chunk);
    this.changed = this.index.size;
    this.head = { sequence: Number(log.at(-1)?.key ?? 0), tag: '' };
    if (log.length === 0 && this.index.size === 0) return;
    this.head = { sequence: this.head.sequence + 1, tag: newTag() };
    await this.catalogue.write([...log.map(({ key }) => commits.delete(key)), this.record(this.head, [])]);
  }

  private addChunk(chunk: ScanResult<TileRecord>[]): void {
    const intact: TileRecord[] = [];
    for (const { key, record, error } of chunk) {
      if (error) this.damaged.set(key, error);
      else intact.push(record);
    }
    this.index.add(intact);
  }

  // After open

  private get isDue(): boolean {
    const { sequence } = this.head!;
    return this.changed >= this.maxTiles || sequence - this.stored >= MAX_UNSAVED_COMMITS;
  }

  /** Compacts and saves the index in the background. An error is kept in `snapshotError`, and the next commit tries again. */
  private scheduleMaintenance(): void {
    if (this.maintenance || !(this.isDue || this.index.needsCompaction)) return;
    this.maintenance = this.maintain().finally(() => {
      this.maintenance = undefined;
    });
  }

  private async maintain(): Promise<void> {
    try {
      await this.index.compact();
      if (this.isDue) await this.save();
      this.snapshotError = undefined;
    } catch (error) {
      this.snapshotError = error;
    }
  }

  /** Writes a snapshot of the current index, then removes the log records that it makes superfluous. */
  private async save(): Promise<void> {
    const { sequence, tag } = this.head!;
    const { changed } = this;
    const images = this.index.images();
    const header = { sequence, tag, damaged: [...this.damaged.keys()] };
    await this.reserve.require(this.snapshots.bytesToWrite(images));
    await onDisk(this.dir, () => this.snapshots.write(images, header));
    this.stored = sequence;
    this.changed -= changed;
    const { commits } = this.catalogue;
    const deletes: CatalogueChange[] = [];
    for await (const key of commits.keys({ before: keyOf(sequence) })) deletes.push(commits.delete(key));
    await this.catalogue.write(deletes);
  }

  private record({ sequence, tag }: { sequence: number; tag: string }, tiles: string[]): CatalogueChange {
    return this.catalogue.commits.set(keyOf(sequence), { tag, tiles });
  }
}

function newTag(): string {
  return randomBytes(8).toString('hex');
}

/** Keys sort like the numbers. */
function keyOf(sequence: number): string {
  return String(sequence).padStart(12, '0');
}
