/** Storing what places look like, and the clusters of those that look alike. */
import type { Catalogue } from './catalogue.js';
import type { Claims } from './claims.js';
import type { RecordEdit } from './commit.js';
import type { ClusteringRecord, TextureRecord, TileRecord } from './records.js';

export const textureKey = ({ collection, geocode }: Pick<TextureRecord, 'collection' | 'geocode'>) =>
  `${collection}/${geocode}`;

/**
 * What takes the textures of these tiles along, and those that are damaged: with a tile goes what its place looks like, until it is computed of
 * another image.
 */
export async function texturesOf(
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
export function writeTextures(claims: Claims, textures: TextureRecord[]): Promise<void> {
  return write(
    claims,
    textures.map((record) => ({ table: 'textures', key: textureKey(record), record })),
  );
}

/** See `Storage.putClustering`. */
export function writeClustering(claims: Claims, record: ClusteringRecord): Promise<void> {
  return write(claims, [{ table: 'clusterings', key: record.collection, record }]);
}

type LookEdit = Extract<RecordEdit, { table: 'textures' | 'clusterings' }>;

/** What is of a collection that was deleted meanwhile is left out. */
async function write(claims: Claims, edits: LookEdit[]): Promise<void> {
  if (edits.length === 0) return;
  const claim = await claims.shared();
  try {
    await claim.commit(async () => {
      const ids = [...new Set(edits.map(({ record }) => record!.collection))];
      const known = await claims.catalogue.collections.getMany(ids);
      const present = new Set(ids.filter((_, i) => known[i]));
      return { edits: edits.filter(({ record }) => present.has(record!.collection)) };
    });
  } finally {
    await claim.release();
  }
}
