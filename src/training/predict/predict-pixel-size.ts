/** Pixel size at which a model reads a tile. */
import type { PixelGrid } from '../../grid/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { TilePixels } from '../data/index.js';

/**
 * Returns the size of a tile at the pixel size of the training of a model: the size of the group of that name, or at the cell of the
 * model the size in training. Returns the reason if the tile has no such size, or if its bands are coarser; `own` is the size of the
 * coarsest band.
 */
export function modelPixels(
  { group, width, height }: TilePixels,
  tile: Pick<TileRecord, 'groups'>,
  own: PixelGrid,
  isOwnCell: boolean,
): PixelGrid | { skipped: string } {
  const named = tile.groups.find(({ role, name }) => role === 'data' && name === group);
  const known = isOwnCell && width !== undefined && height !== undefined ? { width, height } : undefined;
  const size = named ?? known;
  if (!size) return { skipped: `they have no bands of ${group}, the pixel size of the model's training` };
  if (size.width > own.width || size.height > own.height)
    return { skipped: `their pixels are larger than those of the model's training, ${group}` };
  return { width: size.width, height: size.height };
}
