/**
 * Some spectrometers write 0 for pixels that they did not see, although 0 is also a measured value of dark bands, and of bands
 * in which the atmosphere absorbs all light. A detector has seen a pixel if one of its good bands is not 0.
 */
import type { PixelArray } from '../../raster/index.js';

/**
 * Writes `nodata` into all bands of a detector for pixels whose good bands are all 0 or `nodata`, and replaces each 0 in its
 * bad bands. All arrays have the same length. Bands without a detector do not change.
 */
export function maskUnseenPixels(
  pixels: PixelArray[],
  bands: { detector: string | undefined; good: boolean }[],
  nodata: number | null,
): void {
  if (nodata === null) return;
  for (const detector of new Set(bands.map((band) => band.detector))) {
    if (detector === undefined) continue;
    const isOwn = (good: boolean) => (_: PixelArray, i: number) =>
      bands[i]!.detector === detector && bands[i]!.good === good;
    const good = pixels.filter(isOwn(true));
    const seen = seenBy(good, nodata);
    for (const band of good) for (let i = 0; i < band.length; i++) if (seen[i] === 0) band[i] = nodata;
    for (const band of pixels.filter(isOwn(false)))
      for (let i = 0; i < band.length; i++) if (seen[i] === 0 || band[i] === 0) band[i] = nodata;
  }
}

/** 1 if one of the bands holds a value. */
function seenBy(bands: PixelArray[], nodata: number): Uint8Array {
  const seen = new Uint8Array(bands[0]?.length ?? 0);
  for (const band of bands)
    for (let i = 0; i < band.length; i++) if (band[i] !== 0 && band[i] !== nodata) seen[i] = 1;
  return seen;
}
