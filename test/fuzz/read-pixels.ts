/** Reads the first bands and the mask of a raster as a whole. */
import { type RasterHeader, readWindow } from '../../src/raster/index.js';

/** Larger images say nothing more, and take their time. */
const MAX_PIXELS = 2 ** 20;

export async function readPixels(header: RasterHeader): Promise<void> {
  const { width, height, bands } = header;
  if (width * height * bands > MAX_PIXELS) return;
  const all = { column: 0, row: 0, width, height };
  await readWindow(
    header,
    Array.from({ length: Math.min(bands, 3) }, (_, i) => i),
    all,
  );
  if (header.mask) await readWindow(header.mask, [0], all);
}
