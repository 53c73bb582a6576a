/**
 * Counts clear pixels whose red reflectance is below zero. Archives describe the offset of some scenes of Sentinel-2 wrongly, and the
 * reflectances of land are then below zero by up to 0.1.
 */
import { type BandValidity, Mask, type PixelArray } from '../../raster/index.js';

export interface NegativeCount {
  /** Pixels that are clear, or that no mask assesses. */
  clear: number;
  negative: number;
}

/** Dark water and shadows have some; vegetation with a wrong offset has almost only these. */
const MAX_NEGATIVE_SHARE = 0.2;
/** Fewer pixels can be a corner of a scene over water. */
const MIN_CLEAR_PIXELS = 10_000;

/** Undefined without a mask, and without a band of red reflectance whose offset is negative. */
export function countNegative(
  bands: readonly { commonName?: string; scale: number; offset: number }[],
  pixels: readonly PixelArray[],
  valid: readonly BandValidity[],
  mask: Uint8Array | undefined,
): NegativeCount | undefined {
  const index = bands.findIndex(({ commonName }) => commonName === 'red');
  if (!mask || index === -1) return undefined;
  const { scale, offset } = bands[index]!;
  if (!(scale > 0 && offset < 0)) return undefined;
  const zero = -offset / scale;
  const red = pixels[index]!;
  const holdsData = valid[index]!;
  const count = { clear: 0, negative: 0 };
  for (let i = 0; i < mask.length; i++) {
    if ((mask[i] !== Mask.clear && mask[i] !== Mask.notAssessed) || holdsData?.[i] === 0) continue;
    count.clear++;
    if (red[i]! < zero) count.negative++;
  }
  return count;
}

/** Returns a warning if the offset of a scene is in doubt. */
export function offsetWarning({ clear, negative }: NegativeCount): string | undefined {
  if (clear < MIN_CLEAR_PIXELS || negative <= MAX_NEGATIVE_SHARE * clear) return undefined;
  const percent = Math.round((100 * negative) / clear);
  return `${percent} % of the clear pixels have a red reflectance below zero, so the offset is in doubt: it may be applied already; compare with --offset 0 (TW_INGEST_OFFSET_DOUBT)`;
}
