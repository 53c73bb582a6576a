/** The pixel size at which a model reads a tile. */
import type { PixelGrid } from '../../grid/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { TilePixels } from '../data/index.js';

/**
 * Pixels of a tile at the size that a model was trained at: those of the tile's group of that name, else, of the place of the model,
 * as many as in training. Says why if the tile has no such size, or if its bands, of which `own` is the size of the coarsest, have
 * larger pixels.
 */
export function modelPixels(
  { group, width, height }: TilePixels,
  tile: Pick<TileRecord, 'groups'>,
  own: PixelGrid,
  isOwnPlace: boolean,
): PixelGrid | { skipped: string } {
  const named = tile.groups.find(({ role, name }) => role === 'data' && name === group);
  const known = isOwnPlace && width !== undefined && height !== undefined ? { width, height } : undefined;
  const size = named ?? known;
  if (!size) return { skipped: `they have no bands of ${group}, the pixel size of the model's training` };
  if (size.width > own.width || size.height > own.height)
    return { skipped: `their pixels are larger than those of the model's training, ${group}` };
  return { width: size.width, height: size.height };
}
