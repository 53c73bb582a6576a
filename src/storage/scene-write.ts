/**
 * Writes one scene: its tiles are on disk as they arrive, and all of them become visible together. Finds the complete tiles of a committed
 * scene, which the same delivery skips.
 */

import { join } from 'node:path';
import { mapConcurrent } from '../async/index.js';
import { type Catalogue, sceneKey } from './catalogue.js';
import { requireSameCells, tilesOfScene } from './collection-write.js';
import type { Commit, RecordEdit } from './commit.js';
import { type DiskReserve, onDisk } from './disk.js';
import { sceneWriteMisuse } from './errors.js';
import { checkedName, filesOf, type TileVersion, tileFolder, tileId } from './file-names.js';
import { isIntact } from './files.js';
import type { ObjectStore } from './object-store/object-store.js';
import {
  type CollectionRecord,
  keptDeliveries,
  type SceneDelivery,
  type SceneRecord,
  type TileRecord,
} from './records.js';
import { textureDeletions } from './textures.js';
import { StagedVersions, type WriteLock } from './write-lock.js';

/** The part of a scene's record that its delivery determines. */
type SceneMetadata = Pick<
  SceneRecord,
  'fingerprint' | 'start' | 'end' | 'platform' | 'warnings' | 'regions' | 'files' | 'item' | 'job'
>;

/** Tiles of a scene that another node has made for a write, see `Storage.beginScenePart`. */
export interface ScenePart {
  version: string;
  tiles: TileRecord[];
}

/** Selects the cells outside of a write whose tiles it keeps. */
export type KeepCell = (geocode: string) => boolean;

/** Invariant: no tile of this write is in the table `tiles`, and so in a search, before the batch of the commit is on disk. */
export class SceneWrite {
  /** Version folders by geocode. */
  private readonly folders = new Map<string, string>();
  private readonly versions: StagedVersions;
  private ended = false;

  constructor(
    dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
    private readonly reserve: DiskReserve,
    readonly collection: CollectionRecord,
    readonly scene: string,
    geocodes: Iterable<string>,
    private readonly keep: KeepCell,
  ) {
    checkedName('scene id', scene);
    this.versions = new StagedVersions(dir, catalogue, lock);
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

  /** Records durably which folders will be written. Called once, before anything else. */
  begin(): Promise<void> {
    return this.versions.plan([...this.folders.values()]);
  }

  /**
   * Creates the folder for the files of one tile and returns its absolute path. The files are those of `filesOf`. Write them with
   * `writeFile`, or call `syncFile` before `publish`. Throws TW_STORAGE_DISK_LOW.
   */
  async stagingFolder(geocode: string): Promise<string> {
    const folder = this.folderOf(geocode);
    await this.reserve.check();
    if (this.stateOf(geocode) !== 'planned') throw this.misuse(`tile ${geocode} is staged twice`);
    return this.versions.stage(folder);
  }

  /** Writes a file into a staging folder, synced if necessary. Throws errors of the file system. */
  writeFile(path: string, bytes: Uint8Array): Promise<void> {
    return this.versions.writeFile(path, bytes);
  }

  /** Makes a file that other code wrote into a staging folder as durable as `writeFile` would. Throws errors of the file system. */
  syncFile(path: string): Promise<void> {
    return this.versions.syncFile(path);
  }

  /** Makes staged tiles durable under their final names. Best called with many. Throws TW_STORAGE_DISK_LOW. */
  async publish(geocodes: string[]): Promise<void> {
    const folders = geocodes.map((geocode) => this.folderOf(geocode));
    const wrong = geocodes.find((geocode) => this.stateOf(geocode) !== 'staged');
    if (wrong !== undefined) throw this.misuse(`tile ${wrong} is published unstaged or twice`);
    await this.reserve.check();
    await this.versions.publish(folders);
  }

  /**
   * Makes the scene visible in one synced batch: its record and its tiles replace the former tiles, also those of cells without a new
   * tile, except those that `keep` selects among the cells that were not begun. `tiles` are exactly the published ones, `parts` those that
   * other nodes have handed over. The first scene of a collection adds the collection's record.
   */
  async commit(facts: SceneMetadata, tiles: TileRecord[], parts: ScenePart[] = []): Promise<SceneRecord> {
    this.requireOpen();
    this.checkTiles(tiles, parts);
    const made = {
      id: this.scene,
      collection: this.collection.id,
      version: this.version,
      ...facts,
      geocodes: tiles.map((tile) => tile.geocode),
      committedAt: Date.now(),
    };
    let scene: SceneRecord = made;
    const added = [...tiles, ...parts.flatMap((part) => part.tiles)];
    await this.end(async () => {
      const former = await this.formerTiles();
      scene = withKept(made, [...deliveriesOf(parts, facts), ...former.kept]);
      return this.replacement(scene, added, former.replaced);
    });
    return scene;
  }

  /** Ends a write that `Storage.beginScenePart` began: another node commits its published tiles. */
  async handOver(): Promise<void> {
    this.requireOpen();
    await this.end(async () => ({}));
  }

  private async end(build: () => Promise<Commit>): Promise<void> {
    this.ended = true;
    try {
      await this.versions.remove(this.versions.inState('staged'));
      await this.versions.commit([...this.folders.values()], build);
    } catch (error) {
      this.ended = false;
      throw error;
    }
    await this.lock.release();
  }

  /** Removes the files and pending records of an uncommitted write. Does nothing after a commit. All writers must have stopped before. */
  async abort(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    try {
      await this.versions.discard();
    } finally {
      await this.lock.release();
    }
  }

  private async formerTiles(): Promise<{ replaced: TileVersion[]; kept: SceneDelivery[] }> {
    const { catalogue, collection, scene } = this;
    const tiles = await tilesOfScene(catalogue, collection, scene);
    const isKept = (geocode: string) => !this.folders.has(geocode) && this.keep(geocode);
    const replaced = tiles.filter(({ geocode }) => !isKept(geocode));
    if (replaced.length === tiles.length) return { replaced, kept: [] };
    const [scanned] = await catalogue.scenes.scanMany([sceneKey(collection.id, scene)]);
    // A tile whose scene has a damaged record is made again by its next delivery.
    const unknown = byVersion(tiles.filter(({ geocode }) => isKept(geocode)));
    return { replaced, kept: scanned?.record ? keptDeliveries(scanned.record, isKept) : unknown };
  }

  private async replacement(
    scene: SceneRecord,
    added: TileRecord[],
    removed: TileVersion[],
  ): Promise<Commit> {
    const { collection } = this;
    const existing = await this.catalogue.collections.get(collection.id);
    if (existing) requireSameCells(existing, collection);
    const edits: RecordEdit[] = [{ table: 'scenes', key: sceneKey(collection.id, scene.id), record: scene }];
    if (!existing) edits.push({ table: 'collections', key: collection.id, record: collection });
    edits.push(...(await textureDeletions(this.catalogue, collection.id, removed)));
    return { removed, added, edits };
  }

  private folderOf(geocode: string): string {
    this.requireOpen();
    const folder = this.folders.get(geocode);
    if (folder === undefined) throw this.misuse(`it was not begun with cell ${geocode}`);
    return folder;
  }

  private stateOf(geocode: string) {
    return this.versions.stateOf(this.folders.get(geocode)!);
  }

  private checkTiles(tiles: TileRecord[], parts: ScenePart[]): void {
    const published = this.versions.inState('published').length;
    if (tiles.length !== published)
      throw this.misuse(`${published} tiles are published, but ${tiles.length} committed`);
    for (const tile of tiles) this.checkTile(tile, this.version, 'published');
    for (const part of parts) for (const tile of part.tiles) this.checkTile(tile, part.version, 'planned');
    const all = [...tiles, ...parts.flatMap((part) => part.tiles)];
    if (new Set(all.map(({ id }) => id)).size !== all.length) throw this.misuse('a tile is committed twice');
  }

  private checkTile(tile: TileRecord, version: string, state: 'published' | 'planned'): void {
    const { collection, scene } = this;
    const fits =
      this.stateOf(tile.geocode) === state &&
      tile.id === this.tileId(tile.geocode) &&
      tile.collection === collection.id &&
      tile.scene === scene &&
      tile.grid === collection.grid &&
      tile.version === version;
    if (!fits) throw this.misuse(`tile ${tile.id} of version ${tile.version} is not one of its tiles`);
  }

  private requireOpen(): void {
    if (this.ended) throw this.misuse('it has ended already');
  }

  private misuse(detail: string) {
    return sceneWriteMisuse(this.scene, detail);
  }
}

function byVersion(tiles: TileVersion[]): SceneDelivery[] {
  const versions = [...new Set(tiles.map(({ version }) => version))];
  return versions.map((version) => ({
    ...{ version, fingerprint: '' },
    geocodes: tiles.filter((tile) => tile.version === version).map(({ geocode }) => geocode),
  }));
}

const deliveriesOf = (parts: ScenePart[], { fingerprint }: SceneMetadata): SceneDelivery[] =>
  parts
    .filter(({ tiles }) => tiles.length > 0)
    .map(({ version, tiles }) => ({ version, fingerprint, geocodes: tiles.map(({ geocode }) => geocode) }));

function withKept(scene: SceneRecord, earlier: SceneDelivery[]): SceneRecord {
  const geocodes = [...scene.geocodes, ...earlier.flatMap((delivery) => delivery.geocodes)].sort();
  return { ...scene, geocodes, ...(earlier.length > 0 && { earlier }) };
}

const CONCURRENT_CHECKS = 16;

/** Returns the cells whose tile has an intact record, and every file the bytes that were written. */
export async function intactCellsOnDisk(
  dir: string,
  { tiles: table }: Catalogue,
  tiles: TileVersion[],
): Promise<string[]> {
  const intact: string[] = [];
  for (const { id, geocode, version } of tiles) {
    const [scanned] = await table.scanMany([id]);
    const tile = scanned?.record;
    if (tile?.version !== version) continue;
    let isWhole = true;
    for (const file of filesOf(tile))
      isWhole &&= await onDisk(dir, () => isIntact(join(dir, file.path), file));
    if (isWhole) intact.push(geocode);
  }
  return intact;
}

/** For tiles in an object store: the cells of other nodes, and those whose tile in this node's catalogue has all files, by their sizes. */
export async function intactCellsInStore(
  objects: ObjectStore,
  { tiles: table }: Catalogue,
  tiles: TileVersion[],
): Promise<string[]> {
  const areStored = await mapConcurrent(tiles, CONCURRENT_CHECKS, async ({ id, version }) => {
    const tile = await table.get(id);
    if (tile?.version !== version) return true;
    for (const { path, bytes } of filesOf(tile))
      if ((await objects.head(path))?.bytes !== bytes) return false;
    return true;
  });
  return tiles.flatMap(({ geocode }, i) => (areStored[i] ? [geocode] : []));
}
