/** Writes tiles that are made from other tiles. Each becomes visible as a whole, and committed ones stay. */
import type { Catalogue } from './catalogue.js';
import { byCollection, type Commit } from './commit.js';
import type { DiskReserve } from './disk.js';
import { collectionNotFound, derivedWriteMisuse } from './errors.js';
import { type TileVersion, tileFolder } from './file-names.js';
import type { TileRecord } from './records.js';
import { textureDeletions } from './textures.js';
import { StagedVersions, type WriteLock } from './write-lock.js';

/** A tile to remove, if it still has this version. */
export type ObsoleteTile = Pick<TileRecord, 'id' | 'version' | 'collection'>;

export class DerivedWrite {
  /** Folders of the tiles that are planned and not committed, by tile id. */
  private readonly folders = new Map<string, string>();
  private readonly versions: StagedVersions;

  constructor(
    dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
    private readonly reserve: DiskReserve,
  ) {
    this.versions = new StagedVersions(dir, catalogue, lock);
  }

  /** Version of all its tiles. */
  get version(): string {
    return this.lock.version;
  }

  /** Records durably which tiles will be written. Best called with many. */
  async plan(tiles: Omit<TileVersion, 'version'>[]): Promise<void> {
    const folders = tiles.map((tile) => tileFolder({ ...tile, version: this.version }));
    await this.versions.plan(folders);
    for (const [i, { id }] of tiles.entries()) this.folders.set(id, folders[i]);
  }

  /**
   * Creates the folder for the files of a planned tile and returns its absolute path. The files are those of `filesOf`; the caller syncs
   * them before `commit`. Throws TW_STORAGE_DISK_LOW.
   */
  async stagingFolder(id: string): Promise<string> {
    const folder = this.folderOf(id);
    await this.reserve.check();
    if (this.versions.stateOf(folder) !== 'planned') throw derivedWriteMisuse(id, 'it is staged twice');
    return this.versions.stage(folder);
  }

  /**
   * Publishes staged tiles and makes them visible in place of their former versions: all tiles of a collection in one synced
   * batch. The same batches remove the tiles in `obsolete` that still have the given version; returns the number of removed ones.
   * Throws TW_STORAGE_DISK_LOW, TW_STORAGE_NO_COLLECTION.
   */
  async commit(tiles: TileRecord[], obsolete: ObsoleteTile[] = []): Promise<number> {
    if (tiles.length + obsolete.length === 0) return 0;
    for (const { id, version } of tiles)
      if (version !== this.version || this.versions.stateOf(this.folders.get(id) ?? '') !== 'staged')
        throw derivedWriteMisuse(id, 'it is committed unstaged or twice');
    await this.reserve.check();
    const addedOf = byCollection(tiles);
    const obsoleteOf = byCollection(obsolete);
    let removed = 0;
    for (const collection of new Set([...addedOf.keys(), ...obsoleteOf.keys()])) {
      const added = addedOf.get(collection) ?? [];
      const folders = added.map(({ id }) => this.folderOf(id));
      // Each just before its commit: between two commits no lock is held, and garbage collection would remove the files.
      await this.versions.publish(folders);
      let gone: TileRecord[] = [];
      await this.versions.commit(folders, async () => {
        gone = await this.presentOf(obsoleteOf.get(collection) ?? []);
        return this.replacement(collection, added, gone);
      });
      removed += gone.length;
      for (const { id } of added) this.folders.delete(id);
    }
    return removed;
  }

  /** The tiles that no other write has replaced or deleted in the meantime. */
  private async presentOf(tiles: ObsoleteTile[]): Promise<TileRecord[]> {
    const found = await this.catalogue.tiles.getMany(tiles.map(({ id }) => id));
    return found.filter((tile, i) => tile?.version === tiles[i]!.version).filter((tile) => !!tile);
  }

  private async replacement(collection: string, added: TileRecord[], gone: TileRecord[]): Promise<Commit> {
    const { collections, tiles } = this.catalogue;
    const former = await tiles.getMany(added.map(({ id }) => id));
    const removed = [...former.filter((tile) => !!tile), ...gone];
    if (!(await collections.has(collection))) throw collectionNotFound(collection);
    return { removed, added, edits: await textureDeletions(this.catalogue, collection, removed) };
  }

  /** Removes planned and staged tiles that were not committed. Writers into staging folders must have stopped before. */
  async close(): Promise<void> {
    try {
      await this.versions.discard();
      this.folders.clear();
    } finally {
      await this.lock.release();
    }
  }

  private folderOf(id: string): string {
    const folder = this.folders.get(id);
    if (folder === undefined) throw derivedWriteMisuse(id, 'it was not planned, or is committed already');
    return folder;
  }
}
