/** The share of a group that holds data. */
import { isHyperspectral, type PixelArray, type SpectralTags } from '../../raster/index.js';

export interface ValidityStatistics {
  /** For each band: percent of the pixels that hold data. */
  validPercent: number[];
  /** Percent of the pixels that hold data in every band; for a spectrum, in every good band that is not empty. */
  coverage: number;
}

/**
 * `hole` is the stored value for no data; without one, a pixel holds data if its number in `mask` is not 0. `tags` are those of the bands
 * of a spectrum.
 */
export function validityStatistics(
  bands: PixelArray[],
  hole: number | undefined,
  mask: Uint8Array,
  tags: readonly SpectralTags[] = [],
): ValidityStatistics {
  const size = mask.length;
  const percent = (holes: number) => (100 * (size - holes)) / size;
  if (hole === undefined) {
    const valid = percent(nodataPixels(mask, 0));
    return { validPercent: bands.map(() => valid), coverage: valid };
  }
  const holes = bands.map((band) => nodataPixels(band, hole));
  const spectrum = isHyperspectral(tags);
  const counted = [...bands.keys()].filter((b) => !spectrum || (tags[b]?.good !== false && holes[b] < size));
  const some = counted.filter((b) => holes[b] > 0);
  let missing = counted.length === 0 ? size : 0;
  if (some.length === 1) missing = holes[some[0]];
  else if (some.length > 1)
    missing = nodataInAnyBand(
      some.map((b) => bands[b]),
      hole,
    );
  return { validPercent: holes.map(percent), coverage: percent(missing) };
}

function nodataPixels(band: PixelArray, hole: number): number {
  // Most bands of integers have none; `indexOf` finds that out faster.
  const floats = band instanceof Float32Array || band instanceof Float64Array;
  const first = floats ? 0 : band.indexOf(hole);
  if (first < 0) return 0;
  let count = 0;
  for (let i = first; i < band.length; i++) if (band[i] === hole || Number.isNaN(band[i])) count++;
  return count;
}

/** Number of pixels that hold no data in at least one band. */
function nodataInAnyBand(bands: PixelArray[], hole: number): number {
  const missing = new Uint8Array(bands[0].length);
  for (const band of bands)
    for (let i = 0; i < band.length; i++) if (band[i] === hole || Number.isNaN(band[i])) missing[i] = 1;
  return nodataPixels(missing, 1);
}
