/** The textures that the catalogue holds. */

import { toArray } from '../../async/index.js';
import type { Storage, TextureRecord } from '../../storage/index.js';

/** Of a collection, by their geocodes. One whose values are no numbers counts as none, since it can be computed again. */
export async function storedTextures(
  storage: Pick<Storage, 'textures'>,
  collection: string,
): Promise<TextureRecord[]> {
  return (await toArray(storage.textures.list(collection))).filter(isSound);
}

export function isSound({ values }: TextureRecord): boolean {
  return values.every(Number.isFinite);
}
