/**
 * Spectra over the pixels of a place on one date. If several tiles hold the same pixel, the first one with data counts. Runs in worker
 * threads.
 */
import type { BandFile } from '../reading/band-files.js';
import { withOpenTile } from '../reading/open-tile.js';
import { readBlockOfAllBands, type TileGeoTiff } from '../reading/tile-geotiff.js';
import { clearAt, pixelsByBlock, type ZonePixels } from './zonal-statistics.js';

/** The part of an acquisition that one tile holds. Plain data. */
export interface SpectrumPart {
  place: ZonePixels;
  /** All bands of one file, in the order of the file. */
  bands: BandFile[];
  /** One flag per band: only good bands decide whether a pixel holds data. */
  good: boolean[];
  mask: BandFile | undefined;
}

/** Sums over the pixels of one place, a number for each band. Plain JSON. */
export interface SpectrumSums {
  /** Key of the place. */
  key: string;
  /** Clear pixels that hold data in a good band. */
  valid: number;
  counts: number[];
  means: number[];
  /** Sums of squared differences from the mean. */
  squares: number[];
}

/** One result for each place that shows a pixel. Throws TW_IMAGERY_TILE_FILE. */
export function spectrumSums(parts: SpectrumPart[]): SpectrumSums[] {
  const sums: SpectrumSums[] = [];
  for (const place of new Set(parts.map((part) => part.place))) {
    const shown = new Uint8Array(place.pixels.columns.length);
    const values = parts
      .filter((part) => part.place === place)
      .map((part) => spectraOf(part, shown))
      .filter((spectra) => spectra.some((band) => band.length > 0));
    const [first] = values;
    if (!first) continue;
    const bands = first.map((_, band) => values.flatMap((spectra) => [...spectra[band]]));
    const means = bands.map((band) => band.reduce((sum, value) => sum + value, 0) / band.length);
    sums.push({
      key: place.key,
      valid: shown.reduce((sum, one) => sum + one, 0),
      counts: bands.map((band) => band.length),
      means: means.map((mean) => (Number.isNaN(mean) ? 0 : mean)),
      squares: bands.map((band, i) => band.reduce((sum, value) => sum + (value - means[i]) ** 2, 0)),
    });
  }
  return sums;
}

/** Physical values of each band at the clear pixels that no earlier part has `shown`. Marks pixels that hold data as shown. */
function spectraOf({ place, bands, good, mask }: SpectrumPart, shown: Uint8Array): Float64Array[] {
  const { pixels, width, height } = place;
  const wanted = clearAt(mask, pixels, width, height);
  for (let i = 0; i < wanted.length; i++) if (shown[i] === 1) wanted[i] = 0;
  if (!wanted.includes(1)) return [];
  const stored = storedSpectra(bands, place);
  const values = stored.map((band, b) => {
    const { hole, scale, offset } = bands[b];
    const found: number[] = [];
    for (let i = 0; i < wanted.length; i++) {
      const value = band[i];
      if (wanted[i] === 0 || value === hole || !Number.isFinite(value)) continue;
      found.push(value * scale + offset);
      if (good[b]) shown[i] = 1;
    }
    return Float64Array.from(found);
  });
  return values;
}

/** Stored values of all bands of a file at the pixels of a place. */
function storedSpectra(
  [{ path }, ...others]: BandFile[],
  { pixels, width, height }: ZonePixels,
): Float64Array[] {
  const count = 1 + others.length;
  return withOpenTile(path, (handle, cog) => {
    const [level] = cog.levels as [TileGeoTiff['levels'][number]];
    if (level.width !== width || level.height !== height || cog.bands !== count)
      throw new Error(`it has ${cog.bands} bands of ${level.width} x ${level.height} pixels`);
    const out = Array.from({ length: count }, () => new Float64Array(pixels.columns.length));
    for (const { block, first, last, order, places } of pixelsByBlock(pixels.columns, pixels.rows, cog))
      for (const [band, found] of readBlockOfAllBands(handle, cog, block, last + 1, first).entries())
        for (let n = 0; n < order.length; n++) out[band][order[n]] = found[places[n]];
    return out;
  });
}
