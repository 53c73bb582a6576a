/** Textures of cells, and the clusterings of similar ones. */
import type { Catalogue } from './catalogue.js';
import { byCollection, type CommitApplier, type RecordEdit } from './commit.js';
import type { ClusteringRecord, TextureRecord, TileRecord } from './records.js';
import { type LockManager, withLock } from './write-lock.js';

type Site = Pick<TextureRecord, 'collection' | 'geocode'>;

const textureKey = ({ collection, geocode }: Site) => `${collection}/${geocode}`;

/**
 * The textures and clusterings of a node. A damaged record reads as missing, because it can be computed again; `verify` lists it.
 */
export class TextureStore {
  constructor(
    private readonly commits: CommitApplier,
    private readonly locks: () => LockManager,
  ) {}

  private get catalogue(): Catalogue {
    return this.commits.catalogue;
  }

  /** The textures of a collection, ordered by geocode. They are the same on every node that has applied the same commits. */
  async *list(collection: string): AsyncGenerator<TextureRecord> {
    for await (const { record } of this.catalogue.textures.scan({ prefix: `${collection}/` }))
      if (record) yield record;
  }

  async getMany(sites: Site[]): Promise<(TextureRecord | undefined)[]> {
    const scanned = await this.catalogue.textures.scanMany(sites.map(textureKey));
    return scanned.map((one) => one?.record);
  }

  /** Number of commits since the folder was opened that changed textures of a collection, or its clustering. */
  changes(collection: string): number {
    return this.commits.textureChanges.get(collection) ?? 0;
  }

  async getClustering(collection: string): Promise<ClusteringRecord | undefined> {
    const [scanned] = await this.catalogue.clusterings.scanMany([collection]);
    return scanned?.record;
  }

  /**
   * Adds or replaces textures, in one commit for each collection. Leaves out those whose tile was deleted or replaced after they were
   * computed. Durable when it resolves. Returns the number of stored textures.
   */
  async put(textures: TextureRecord[]): Promise<number> {
    let stored = 0;
    for (const own of byCollection(textures).values()) {
      let current: TextureRecord[] = [];
      await this.write(async () => {
        const tiles = await this.catalogue.tiles.scanMany(own.map(({ tile }) => tile));
        current = own.filter(({ version }, i) => tiles[i]?.record?.version === version);
        return current.map((record) => ({ table: 'textures', key: textureKey(record), record }));
      });
      stored += current.length;
    }
    return stored;
  }

  /** Replaces the clustering of a collection, unless the collection was deleted. Durable when it resolves. */
  putClustering(record: ClusteringRecord): Promise<void> {
    const { collection } = record;
    return this.write(async () =>
      (await this.catalogue.collections.has(collection))
        ? [{ table: 'clusterings', key: collection, record }]
        : [],
    );
  }

  /** Commits the result of `build`, which reads the state that the commit changes. */
  private write(build: () => Promise<RecordEdit[]>): Promise<void> {
    return withLock(this.locks().lockShared(), (lock) => lock.commit(async () => ({ edits: await build() })));
  }
}

/**
 * Edits that delete the textures computed from these tiles, and damaged ones. The site has no texture until one is computed from
 * another image.
 */
export async function textureDeletions(
  { textures }: Catalogue,
  collection: string,
  tiles: Pick<TileRecord, 'id' | 'geocode'>[],
): Promise<RecordEdit[]> {
  const keys = tiles.map(({ geocode }) => textureKey({ collection, geocode }));
  const scanned = await textures.scanMany(keys);
  return tiles.flatMap(({ id }, i) =>
    scanned[i] && (scanned[i].error || scanned[i].record.tile === id)
      ? [{ table: 'textures', key: keys[i], record: null }]
      : [],
  );
}
