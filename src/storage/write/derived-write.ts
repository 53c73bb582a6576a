/** Writing tiles that are made from others: each is whole or absent, and those that are committed stay. */
import type { Catalogue } from '../catalogue/catalogue.js';
import { byCollection, type Commit } from '../catalogue/commit.js';
import type { TileRecord } from '../catalogue/records.js';
import { collectionNotFound, derivedWriteMisuse } from '../errors.js';
import type { DiskReserve } from '../files/disk-reserve.js';
import { type TileVersion, tileFolder } from '../files/paths.js';
import { publishVersions, removeVersions, stageVersion } from '../files/version-folder.js';
import { textureDeletions } from './texture-write.js';
import type { WriteLock } from './write-lock.js';

/** A tile to remove, if it still has this version. */
export type ObsoleteTile = Pick<TileRecord, 'id' | 'version' | 'collection'>;

/**
 * Invariants, at every moment and after a kill at any moment: a version folder that this write has made is named by
 * `pending` from before it exists until the batch that puts its tile's record in place of the former one; a commit names
 * published folders only, and these were made durable before. So every tile of a commit is there as a whole, and what has
 * none is removed by `close` or by the next open.
 */
export class DerivedWrite {
  /** Folders of the tiles that are planned and not committed, by tile id. */
  private readonly folders = new Map<string, string>();
  private readonly staged = new Set<string>();

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
    private readonly reserve: DiskReserve,
  ) {}

  /** Version of all its tiles. */
  get version(): string {
    return this.lock.version;
  }

  /** Records durably which tiles are about to be written. Best called with many. */
  async plan(tiles: Omit<TileVersion, 'version'>[]): Promise<void> {
    const { pending } = this.catalogue;
    const since = Date.now();
    const folders = tiles.map((tile) => tileFolder({ ...tile, version: this.version }));
    await this.catalogue.write(folders.map((folder) => pending.set(folder, { since })));
    for (const [i, { id }] of tiles.entries()) this.folders.set(id, folders[i]);
  }

  /**
   * Makes the folder for the files of a planned tile and returns its absolute path. The files are `<group>.tif`; who writes
   * them syncs them before `commit`. Throws TW_STORAGE_DISK_LOW.
   */
  async stagingFolder(id: string): Promise<string> {
    const folder = this.folderOf(id);
    if (this.staged.has(id)) throw derivedWriteMisuse(id, 'it is staged twice');
    this.staged.add(id);
    await this.reserve.check();
    return stageVersion(this.dir, folder);
  }

  /**
   * Publishes staged tiles and makes them visible, each in place of its former version: all tiles of a collection in one synced
   * batch. The same batches remove the tiles in `obsolete` that still have the version given there; returns how many. Throws
   * TW_STORAGE_DISK_LOW, TW_STORAGE_NO_COLLECTION.
   */
  async commit(tiles: TileRecord[], obsolete: ObsoleteTile[] = []): Promise<number> {
    if (tiles.length + obsolete.length === 0) return 0;
    for (const { id, version } of tiles)
      if (!this.staged.has(id) || version !== this.version)
        throw derivedWriteMisuse(id, 'it is committed unstaged or twice');
    await this.reserve.check();
    let removed = 0;
    const [made, old] = [byCollection(tiles), byCollection(obsolete)];
    for (const collection of new Set([...made.keys(), ...old.keys()])) {
      const own = made.get(collection) ?? [];
      const folders = own.map(({ id }) => this.folderOf(id));
      await publishVersions(this.dir, folders, this.lock.requiresFsync);
      // Only now: between two commits no claim is held, and a sweep would remove the files.
      await this.lock.upload(folders);
      const done = folders.map((folder) => this.catalogue.pending.delete(folder));
      let gone: TileRecord[] = [];
      await this.lock
        .commit(async () => {
          gone = await this.presentOf(old.get(collection) ?? []);
          return this.replacement(collection, own, gone);
        }, done)
        .catch((error) => {
          // Only the next open can tell whether they are committed: until then their files and pending records stay.
          if (this.lock.isUncertain) this.forgetTiles(own);
          throw error;
        });
      removed += gone.length;
      this.forgetTiles(own);
    }
    return removed;
  }

  private forgetTiles(tiles: TileRecord[]): void {
    for (const { id } of tiles) {
      this.folders.delete(id);
      this.staged.delete(id);
    }
  }

  /** Those that nobody has replaced or deleted in the meantime. */
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

  /** Removes what is planned or staged and was not committed. Who writes into staging folders must have stopped before. */
  async close(): Promise<void> {
    try {
      // Then only the next open can tell what is committed: its files must stay until then.
      if (this.catalogue.writeError !== undefined || this.folders.size === 0) return;
      await removeVersions(
        this.dir,
        [...this.staged].map((id) => this.folderOf(id)),
      );
      const { pending } = this.catalogue;
      await this.catalogue.write([...this.folders.values()].map((folder) => pending.delete(folder)));
      this.folders.clear();
      this.staged.clear();
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
