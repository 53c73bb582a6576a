/** Opens stored tile files, for a moment each: they are many, and opening one costs little. */
import { closeSync, openSync } from 'node:fs';
import { messageOf } from '../../errors.js';
import { tileUnreadable } from '../errors.js';
import { readTileGeoTiff, type TileGeoTiff } from './tile-geotiff.js';

/** Gives an open tile file and its structure to `read`. Throws TW_IMAGERY_TILE_FILE for whatever goes wrong. */
export function withOpenTile<T>(path: string, read: (file: number, cog: TileGeoTiff) => T): T {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return read(file, readTileGeoTiff(file));
  } catch (error) {
    // People who look at maps need not know where the data folder is.
    const name = path.slice(path.lastIndexOf('/tiles/') + 1);
    throw tileUnreadable.because(error, name, messageOf(error).replaceAll(path, name));
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
