/** Limits on sizes in files; larger ones are errors. */
import { unsupported } from '../errors.js';

/** No real sensor has wider images. The limit keeps arithmetic on sizes exact. */
export const MAX_SIDE_PIXELS = 2 ** 24;
export const MAX_BANDS = 4096;
/** Largest decoded size of one block, bytes. */
export const MAX_BLOCK_BYTES = 2 ** 30;

/** Throws TW_RASTER_UNSUPPORTED for a raster that is too large. */
export function requireSupportedSize(path: string, width: number, height: number, bands: number): void {
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS)
    throw unsupported(path, `its size is ${width} x ${height} with ${bands} bands`);
}
