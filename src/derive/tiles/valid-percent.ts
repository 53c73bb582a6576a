/** How much of a group holds data. */
import { isHyperspectral, type PixelArray, type SpectralTags } from '../../raster/index.js';

export interface ValidityStatistics {
  /** Percent of the pixels that hold data, of each band. */
  validPercent: number[];
  /** Percent of the pixels that hold data in every band; of a spectrum, in every good band that is not empty. */
  coverage: number;
}

/**
 * `hole` is the stored value for no data; without one, a pixel holds data where `seen` is not 0. `tags` are those of the bands of a
 * spectrum.
 */
export function validityStatistics(
  bands: PixelArray[],
  hole: number | undefined,
  seen: Uint8Array,
  tags: readonly SpectralTags[] = [],
): ValidityStatistics {
  const size = seen.length;
  const percent = (holes: number) => (100 * (size - holes)) / size;
  if (hole === undefined) {
    const valid = percent(nodataPixels(seen, 0));
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
  // Most bands of whole numbers have none, which is found out faster so.
  const floats = band instanceof Float32Array || band instanceof Float64Array;
  const first = floats ? 0 : band.indexOf(hole);
  if (first < 0) return 0;
  let count = 0;
  for (let i = first; i < band.length; i++) if (band[i] === hole || Number.isNaN(band[i])) count++;
  return count;
}

/** Pixels that hold no data in one band or another. */
function nodataInAnyBand(bands: PixelArray[], hole: number): number {
  const missing = new Uint8Array(bands[0].length);
  for (const band of bands)
    for (let i = 0; i < band.length; i++) if (band[i] === hole || Number.isNaN(band[i])) missing[i] = 1;
  return nodataPixels(missing, 1);
}
