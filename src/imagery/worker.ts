/**
 * A worker thread: decodes blocks of tile files, computes series and spectra, and runs kernels, expressions, algorithms and colour
 * formulas.
 */
import { handleTasksByKind } from '../async/index.js';
import type { PixelArray } from '../raster/index.js';
import { RENDER_HANDLERS } from './render.js';
import { RESAMPLE_HANDLERS } from './resample.js';
import { READ_HANDLERS } from './tile-geotiff.js';
import { SERIES_HANDLERS } from './zone-statistics.js';

const HANDLERS = { ...READ_HANDLERS, ...RESAMPLE_HANDLERS, ...RENDER_HANDLERS, ...SERIES_HANDLERS };

export type ImageryHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (ArrayBuffer.isView(result)) return movable(result);
  if (Array.isArray(result)) return result.flatMap((one) => (ArrayBuffer.isView(one) ? movable(one) : []));
  return 'pixels' in result ? movable(result.pixels) : [];
});

/** Node shares one buffer among small arrays, which cannot be moved to another thread. */
function movable({ buffer, byteLength }: PixelArray): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && byteLength >= Buffer.poolSize ? [buffer] : [];
}
