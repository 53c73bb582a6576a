/** Opens stored tile files, for a moment each: they are many, and opening one costs little. */
import { closeSync, openSync } from 'node:fs';
import { messageOf } from '../../errors.js';
import { tileUnreadable } from '../errors.js';
import { type Cog, readCog } from './tile-geotiff.js';

/** Gives an open tile file and its structure to `read`. Throws TW_IMAGERY_TILE_FILE for whatever goes wrong. */
export function withTileFile<T>(path: string, read: (file: number, cog: Cog) => T): T {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return read(file, readCog(file));
  } catch (error) {
    // People who look at maps need not know where the data folder is.
    const name = path.slice(path.lastIndexOf('/tiles/') + 1);
    throw tileUnreadable.because(error, name, messageOf(error).replaceAll(path, name));
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
