/** Puts textures into a store without their tiles. */
import type { Storage, TextureRecord } from '../../src/storage/index.js';

/** Unlike `storage.textures.put`, does not require that the tiles exist. Counts as one change of textures. */
export function putTextures(storage: Storage, textures: TextureRecord[]): Promise<void> {
  const edits = textures.map((record) => ({
    ...{ table: 'textures' as const, key: `${record.collection}/${record.geocode}`, record },
  }));
  return storage['commitApplier'].apply({ edits });
}
