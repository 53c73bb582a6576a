/** Storing what places look like, and the clusters of those that look alike. */
import type { Claims } from './claims.js';
import type { RecordEdit } from './commit.js';
import type { ClusteringRecord, TextureRecord } from './records.js';

export const textureKey = ({ collection, geocode }: Pick<TextureRecord, 'collection' | 'geocode'>) =>
  `${collection}/${geocode}`;

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
