/** The column index and what makes it quick to load: a snapshot, and a log of the commits since. */
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TilewrightError } from '../../../errors.js';
import type { Catalogue, IndexLogRecord } from '../../catalogue/catalogue.js';
import type { CatalogueChange, ScanResult } from '../../catalogue/table.js';
import { onDisk } from '../../files/disk-errors.js';
import type { DiskReserve } from '../../files/disk-reserve.js';
import type { TileRecord } from '../../records/records.js';
import { ColumnIndex } from '../column-index.js';
import { type Snapshot, SnapshotFolder } from './snapshot-file.js';

const FOLDER = 'columns';
const LOAD_CHUNK_RECORDS = 5_000;
/** A snapshot is due when so many tiles have changed since the last one, or so many commits have come. */
const MAX_UNSAVED_TILES = 20_000;
const MAX_UNSAVED_COMMITS = 1_000;

/** How the index was loaded at open. */
export interface IndexLoad {
  from: 'snapshot' | 'catalogue';
  /** Why the snapshot that was there could not be used. */
  reason?: string;
}

/**
 * Each commit that changes tiles has a number; its batch also writes a record of that number which names those tiles. A
 * snapshot holds the tiles as of one commit. The index is a snapshot and, for every tile that a later commit names, what
 * the table `tiles` says of it now. It is used only where the record of its commit is still there with the same tag (else
 * the catalogue is another one, such as a restored one), and none of the following records is missing; else the whole
 * table is read.
 *
 * Invariants: the records in the log are consecutive; the first is that of the stored snapshot or an earlier one; the last
 * is that of `head`, the last commit that the index holds (outside of `Commits.apply`).
 */
export class PersistentIndex {
  readonly index = new ColumnIndex();
  /** Tile records that were found damaged, by id: TW_STORAGE_CORRUPT, naming the key. They are not in the index. */
  readonly damaged = new Map<string, TilewrightError>();
  /** Why the last snapshot could not be written; undefined where all is well. */
  snapshotError: unknown;
  load: IndexLoad = { from: 'catalogue' };
  private head: { sequence: number; tag: string } | undefined;
  private next: { sequence: number; tag: string } | undefined;
  /** The commit of the stored snapshot; 0 where there is none. */
  private stored = 0;
  private changed = 0;
  private maintenance: Promise<void> | undefined;
  private readonly snapshots: SnapshotFolder;

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly reserve: DiskReserve,
    /** A snapshot is due when so many tiles have changed. */
    private readonly maxTiles = MAX_UNSAVED_TILES,
  ) {
    this.snapshots = new SnapshotFolder(join(dir, FOLDER));
  }

  /** Loads the index. Nothing else is called before. */
  async open(): Promise<void> {
    await onDisk(this.dir, () => mkdir(join(this.dir, FOLDER), { recursive: true }));
    const log: ScanResult<IndexLogRecord>[] = [];
    for await (const scanned of this.catalogue.commits.scan()) log.push(scanned);
    if (!(await this.loadSnapshot(log))) await this.loadCatalogue(log);
    this.scheduleMaintenance();
  }

  /** For the batch of a commit: the record that names the tiles that it adds, changes or removes. */
  logRecord(tiles: Iterable<string>): CatalogueChange {
    this.next = { sequence: this.head!.sequence + 1, tag: newTag() };
    return this.record(this.next, [...tiles]);
  }

  /** Changes the index when the batch of `logged` is on disk. `seq` is the commit's number in a cluster. */
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

  /** Leaves a tile out whose record turned out to be damaged. */
  exclude(id: string, error: TilewrightError): void {
    this.damaged.set(id, error);
    this.index.remove([id]);
  }

  /**
   * Writes a snapshot where anything has changed since the last one. All that it would hold is in the catalogue, so where it
   * cannot be written there is a warning and no error.
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
      // Who has removed the folder needs none.
      if ((error.cause as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT')
        process.emitWarning(
          `no snapshot of the index, so that the next start takes longer: ${error.message}`,
        );
    }
  }

  // At open

  /** Loads the index from the newest snapshot, or returns false. Removes all files that are not part of a usable snapshot. */
  private async loadSnapshot(log: ScanResult<IndexLogRecord>[]): Promise<boolean> {
    const newest = await onDisk(this.dir, () => this.snapshots.newest());
    const snapshot = newest && (await this.loadFile(newest, log));
    const reason = snapshot && 'unusable' in snapshot ? snapshot.unusable : undefined;
    const files = snapshot && 'files' in snapshot ? snapshot.files : [];
    const isLoaded = files.length > 0;
    this.load = { from: isLoaded ? 'snapshot' : 'catalogue', reason };
    if (reason)
      process.emitWarning(`the index is read from the catalogue, for ${newest} of ${this.dir} ${reason}`);
    await onDisk(this.dir, () => this.snapshots.removeOthers(files));
    return isLoaded;
  }

  /** Loads the index from a snapshot, or says why it cannot. */
  private async loadFile(
    name: string,
    log: ScanResult<IndexLogRecord>[],
  ): Promise<Snapshot | { unusable: string }> {
    const snapshot = await this.snapshots.read(name);
    if ('unusable' in snapshot) return snapshot;
    if (snapshot.images.some((image) => image.lacksWavelengths) && this.catalogue.tileLayouts.haveSpectra())
      return { unusable: 'does not say the wavelengths of spectra' };
    const { sequence, tag, damaged } = snapshot.header;
    const at = log.findIndex(({ key }) => key === keyOf(sequence));
    if (at < 0) return { unusable: 'is of a commit that the catalogue does not know' };
    const since = log.slice(at);
    const doubtful = new Set(damaged);
    for (const [i, { key, record, error }] of since.entries()) {
      if (error) return { unusable: `cannot be brought up to date: ${error.message}` };
      if (key !== keyOf(sequence + i))
        return { unusable: `cannot be brought up to date: commit ${sequence + i} is missing in the log` };
      if (i === 0 && record.tag !== tag) return { unusable: 'is of another history of the catalogue' };
      if (i > 0) for (const id of record.tiles) doubtful.add(id);
    }
    this.index.restore(snapshot.images);
    await this.lookUp([...doubtful]);
    this.stored = sequence;
    this.changed = doubtful.size;
    this.head = { sequence: sequence + since.length - 1, tag: since.at(-1)!.record!.tag };
    return snapshot;
  }

  /** Makes the index say of some tiles what the catalogue says. */
  private async lookUp(ids: string[]): Promise<void> {
    const { tiles } = this.catalogue;
    for (let from = 0; from < ids.length; from += LOAD_CHUNK_RECORDS) {
      const some = ids.slice(from, from + LOAD_CHUNK_RECORDS);
      this.index.remove(some);
      this.addChunk((await tiles.scanMany(some)).filter((scanned) => scanned !== undefined));
    }
  }

  /** Reads all tiles, and begins the log anew. */
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
    const sound: TileRecord[] = [];
    for (const { key, record, error } of chunk) {
      if (error) this.damaged.set(key, error);
      else sound.push(record);
    }
    this.index.add(sound);
  }

  // Later

  private get isDue(): boolean {
    const { sequence } = this.head!;
    return this.changed >= this.maxTiles || sequence - this.stored >= MAX_UNSAVED_COMMITS;
  }

  /** Sees to the index in the background. Nobody waits for it, so an error is kept, and the next commit tries again. */
  private scheduleMaintenance(): void {
    if (this.maintenance || !(this.isDue || this.index.needsCompaction)) return;
    this.maintenance = this.maintain().then(
      () => {
        this.snapshotError = undefined;
        this.maintenance = undefined;
      },
      (error) => {
        this.snapshotError = error;
        this.maintenance = undefined;
      },
    );
  }

  private async maintain(): Promise<void> {
    await this.index.compact();
    if (this.isDue) await this.save();
  }

  /** Writes a snapshot of what the index is now, then removes what it makes superfluous. */
  private async save(): Promise<void> {
    const { sequence, tag } = this.head!;
    const { changed } = this;
    const images = this.index.images();
    const stamp = { sequence, tag, damaged: [...this.damaged.keys()] };
    await this.reserve.require(this.snapshots.bytesToWrite(images));
    await onDisk(this.dir, () => this.snapshots.write(images, stamp));
    this.stored = sequence;
    this.changed -= changed;
    const { commits } = this.catalogue;
    const covered: CatalogueChange[] = [];
    for await (const key of commits.keys({ before: keyOf(sequence) })) covered.push(commits.delete(key));
    await this.catalogue.write(covered);
  }

  private record({ sequence, tag }: { sequence: number; tag: string }, tiles: string[]): CatalogueChange {
    return this.catalogue.commits.set(keyOf(sequence), { tag, tiles });
  }
}

function newTag(): string {
  return randomBytes(8).toString('hex');
}

/** Sorts like the numbers. */
function keyOf(sequence: number): string {
  return String(sequence).padStart(12, '0');
}
