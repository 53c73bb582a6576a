/** Writing one scene: its tiles are on disk as they arrive, and all of them become visible at once. */
import { writeFile } from 'node:fs/promises';
import { type Catalogue, type CatalogueChange, sceneKey } from '../catalogue/catalogue.js';
import type { Commit, RecordEdit } from '../catalogue/commit.js';
import type { CollectionRecord, SceneRecord, TileRecord } from '../catalogue/records.js';
import { sceneWriteMisuse } from '../errors.js';
import type { DiskReserve } from '../files/disk-reserve.js';
import { fsyncPath, writeFileSynced } from '../files/durable-fs.js';
import { checkedName, tileId } from '../files/names.js';
import { tileFolder } from '../files/paths.js';
import { publishVersions, removeVersions, stageVersion } from '../files/version-folder.js';
import { requireSameCells, tilesOfScene } from './delete-scenes.js';
import { textureDeletions } from './texture-write.js';
import type { WriteLock } from './write-lock.js';

/** What a delivery says of a scene; the rest of its record follows from the write. */
export type SceneMetadata = Pick<SceneRecord, 'fingerprint' | 'start' | 'end' | 'platform' | 'warnings'>;

/**
 * Invariants, at every moment and after a kill at any moment:
 * - a version folder that this write has made is named by a record: by `pending` from before it exists until the commit,
 *   by `tiles` from the commit on (both change in the same batch). So the next open can remove what is left of a write
 *   without walking the disk, and nothing that is committed is ever removed by it;
 * - no tile of this write is in the table `tiles`, and so in a search, before the batch of the commit is on disk;
 * - the commit names published folders only, and these were made durable before.
 */
export class SceneWrite {
  private readonly folders = new Map<string, string>();
  private readonly staged = new Set<string>();
  private readonly published = new Set<string>();
  private ended = false;

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
    private readonly reserve: DiskReserve,
    readonly collection: CollectionRecord,
    readonly scene: string,
    geocodes: Iterable<string>,
  ) {
    checkedName('scene id', scene);
    for (const geocode of geocodes) {
      const tile = { id: this.tileId(geocode), grid: collection.grid, geocode, version: this.version };
      this.folders.set(geocode, tileFolder(tile));
    }
  }

  /** Version of the scene and of all its tiles. */
  get version(): string {
    return this.lock.version;
  }

  tileId(geocode: string): string {
    return tileId(this.collection.id, this.scene, this.collection.grid, geocode);
  }

  /** Records durably what is about to be written. Called once, before anything else. */
  async begin(): Promise<void> {
    const { pending } = this.catalogue;
    const since = Date.now();
    await this.catalogue.write([...this.folders.values()].map((folder) => pending.set(folder, { since })));
  }

  /**
   * Makes the folder for the files of one tile and returns its absolute path. The files are `<group>.tif`, written by
   * `writeFile`, or synced by who writes them before `publish`. Throws TW_STORAGE_DISK_LOW.
   */
  async stagingFolder(geocode: string): Promise<string> {
    const folder = this.folderOf(geocode);
    if (this.staged.has(geocode)) throw this.misuse(`tile ${geocode} is staged twice`);
    this.staged.add(geocode);
    await this.reserve.check();
    return stageVersion(this.dir, folder);
  }

  /** Writes a file into a staging folder, and syncs it where it has to be. Errors are those of the system. */
  writeFile(path: string, bytes: Uint8Array): Promise<void> {
    return this.lock.requiresFsync ? writeFileSynced(path, bytes) : writeFile(path, bytes);
  }

  /** Makes a file that somebody else wrote into a staging folder as durable as `writeFile` would have made it. Errors are those of the system. */
  async syncFile(path: string): Promise<void> {
    if (this.lock.requiresFsync) await fsyncPath(path);
  }

  /**
   * Makes staged tiles durable under their final names, each folder synced once. Best called with many.
   * Throws TW_STORAGE_DISK_LOW.
   */
  async publish(geocodes: string[]): Promise<void> {
    const folders = geocodes.map((geocode) => this.folderOf(geocode));
    const wrong = geocodes.find((geocode) => !this.staged.has(geocode) || this.published.has(geocode));
    if (wrong !== undefined) throw this.misuse(`tile ${wrong} is published unstaged or twice`);
    await this.reserve.check();
    await publishVersions(this.dir, folders, this.lock.requiresFsync);
    await this.lock.upload(folders);
    for (const geocode of geocodes) this.published.add(geocode);
  }

  /**
   * Makes the scene visible in one synced batch: its record and its tiles, in place of all tiles of its former version,
   * also those of cells that this one lacks. `tiles` are the published ones, neither more nor fewer. Cells that were
   * begun but hold no tile are dropped. The first scene of a collection brings the collection's record with it.
   */
  async commit(facts: SceneMetadata, tiles: TileRecord[]): Promise<SceneRecord> {
    this.checkOpen();
    for (const tile of tiles) this.checkTile(tile);
    if (tiles.length !== this.published.size || new Set(tiles.map((tile) => tile.id)).size !== tiles.length)
      throw this.misuse(`${this.published.size} tiles are published, but ${tiles.length} committed`);
    const scene: SceneRecord = {
      id: this.scene,
      collection: this.collection.id,
      version: this.version,
      ...facts,
      geocodes: tiles.map((tile) => tile.geocode).sort(),
      committedAt: Date.now(),
    };
    this.ended = true;
    try {
      const unpublished = [...this.staged].filter((geocode) => !this.published.has(geocode));
      await this.removeFiles(unpublished);
      await this.lock.commit(() => this.replacement(scene, tiles), this.pendingDeletes());
    } catch (error) {
      this.ended = false;
      throw error;
    }
    await this.lock.release();
    return scene;
  }

  /**
   * Undoes an uncommitted write: its files and its pending records go. Does nothing after a commit. Who writes into
   * staging folders must have stopped before.
   */
  async abort(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    try {
      // Then only the next open can tell whether the scene is committed: its files must stay until then.
      if (this.catalogue.writeError !== undefined || this.lock.isUncertain) return;
      await this.removeFiles(this.staged);
      await this.catalogue.write(this.pendingDeletes());
    } finally {
      await this.lock.release();
    }
  }

  private async replacement(scene: SceneRecord, added: TileRecord[]): Promise<Commit> {
    const { collection, catalogue } = this;
    const existing = await catalogue.collections.get(collection.id);
    if (existing) requireSameCells(existing, collection);
    const edits: RecordEdit[] = [{ table: 'scenes', key: sceneKey(collection.id, scene.id), record: scene }];
    if (!existing) edits.push({ table: 'collections', key: collection.id, record: collection });
    const removed = await tilesOfScene(catalogue, collection, scene.id);
    return { removed, added, edits: edits.concat(await textureDeletions(catalogue, collection.id, removed)) };
  }

  private removeFiles(geocodes: Iterable<string>): Promise<void> {
    const folders = [...geocodes].map((geocode) => this.folders.get(geocode)!);
    return removeVersions(this.dir, folders);
  }

  private pendingDeletes(): CatalogueChange[] {
    return [...this.folders.values()].map((folder) => this.catalogue.pending.delete(folder));
  }

  private folderOf(geocode: string): string {
    this.checkOpen();
    const folder = this.folders.get(geocode);
    if (folder === undefined) throw this.misuse(`it was not begun with cell ${geocode}`);
    return folder;
  }

  private checkTile(tile: TileRecord): void {
    const { collection, scene, version } = this;
    const fits =
      this.published.has(tile.geocode) &&
      tile.id === this.tileId(tile.geocode) &&
      tile.collection === collection.id &&
      tile.scene === scene &&
      tile.grid === collection.grid &&
      tile.version === version;
    if (!fits)
      throw this.misuse(`tile ${tile.id} of version ${tile.version} is not one of its published tiles`);
  }

  private checkOpen(): void {
    if (this.ended) throw this.misuse('it has ended already');
  }

  private misuse(detail: string) {
    return sceneWriteMisuse(this.scene, detail);
  }
}
