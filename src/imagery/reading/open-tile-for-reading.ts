/** Opens stored tile files for single reads: there are many files, and opening one is cheap. */
import { closeSync, openSync } from 'node:fs';
import { messageOf } from '../../errors.js';
import { tileUnreadable } from '../errors.js';
import { readTileGeoTiff, type TileGeoTiff } from './read-tile-geotiff.js';

/** Passes an open tile file and its structure to `read`. Throws TW_IMAGERY_TILE_FILE for every error. */
export function withOpenTile<T>(path: string, read: (file: number, cog: TileGeoTiff) => T): T {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return read(file, readTileGeoTiff(file));
  } catch (error) {
    // Clients must not learn the path of the data folder.
    const name = path.slice(path.lastIndexOf('/tiles/') + 1);
    throw tileUnreadable.because(error, name, messageOf(error).replaceAll(path, name));
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
