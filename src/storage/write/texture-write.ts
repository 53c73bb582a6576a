/** Storing what places look like, and the clusters of those that look alike. */
import type { Catalogue } from '../catalogue/catalogue.js';
import { byCollection, type RecordEdit } from '../catalogue/commit.js';
import type { ClusteringRecord, TextureRecord, TileRecord } from '../catalogue/records.js';
import type { LockManager } from './write-lock.js';

export const textureKey = ({ collection, geocode }: Pick<TextureRecord, 'collection' | 'geocode'>) =>
  `${collection}/${geocode}`;

/**
 * What takes the textures of these tiles along, and those that are damaged: with a tile goes what its place looks like, until it is computed of
 * another image.
 */
export async function textureDeletions(
  { textures }: Catalogue,
  collection: string,
  tiles: Pick<TileRecord, 'id' | 'geocode'>[],
): Promise<RecordEdit[]> {
  const keys = tiles.map(({ geocode }) => textureKey({ collection, geocode }));
  const known = await textures.scanMany(keys);
  return tiles.flatMap(({ id }, i) =>
    known[i] && (known[i].error || known[i].record.tile === id)
      ? [{ table: 'textures', key: keys[i], record: null }]
      : [],
  );
}

/** See `Storage.putTextures`. */
export async function writeTextures(claims: LockManager, textures: TextureRecord[]): Promise<void> {
  for (const [collection, own] of byCollection(textures))
    await write(
      claims,
      collection,
      own.map((record) => ({ table: 'textures', key: textureKey(record), record })),
    );
}

/** See `Storage.putClustering`. */
export function writeClustering(claims: LockManager, record: ClusteringRecord): Promise<void> {
  return write(claims, record.collection, [{ table: 'clusterings', key: record.collection, record }]);
}

/** Writes nothing if the collection has been deleted in the meantime. */
async function write(claims: LockManager, collection: string, edits: RecordEdit[]): Promise<void> {
  const claim = await claims.lockShared();
  try {
    await claim.commit(async () => ((await claims.catalogue.collections.has(collection)) ? { edits } : {}));
  } finally {
    await claim.release();
  }
}
