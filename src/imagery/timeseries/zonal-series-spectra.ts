/**
 * Spectra over the pixels of a zone on one date. If several tiles have the same pixel, the first one with data counts. Runs in worker
 * threads.
 */
import { type BandFile, physicalValue, readBlockOfAllBands, withOpenTile } from '../reading/index.js';
import type { ZonePixels } from './series-zone-pixels.js';
import { clearAt, pixelsByBlock } from './zonal-series-statistics.js';

/** The part of an acquisition in one tile. Plain data. */
export interface SpectrumPart {
  place: ZonePixels;
  /** All bands of one file, in the order of the file. */
  bands: BandFile[];
  /** One flag per band: only good bands decide whether a pixel holds data. */
  good: boolean[];
  mask: BandFile | undefined;
}

/** Statistics over the pixels of a zone in one cell, one number for each band. Plain JSON. */
export interface SpectrumSums {
  /** Key of the `ZonePixels`. */
  key: string;
  /** Clear pixels that have data in a good band. */
  valid: number;
  counts: number[];
  means: number[];
  /** Sums of squared differences from the mean. */
  squares: number[];
}

/** Returns one result for each cell with a clear pixel that has data. Throws TW_IMAGERY_TILE_FILE. */
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

/** Physical values of each band at the clear pixels that are not yet `shown`. Marks pixels that have data as shown. */
function spectraOf({ place, bands, good, mask }: SpectrumPart, shown: Uint8Array): Float64Array[] {
  const { pixels, width, height } = place;
  const wanted = clearAt(mask, pixels, width, height);
  for (let i = 0; i < wanted.length; i++) if (shown[i] === 1) wanted[i] = 0;
  if (!wanted.includes(1)) return [];
  return storedSpectra(bands, place).map((stored, b) => {
    const found: number[] = [];
    for (let i = 0; i < wanted.length; i++) {
      const value = physicalValue(stored[i], bands[b]);
      if (wanted[i] === 0 || !Number.isFinite(value)) continue;
      found.push(value);
      if (good[b]) shown[i] = 1;
    }
    return Float64Array.from(found);
  });
}

/** Stored values of all bands of a file at the pixels of a zone. */
function storedSpectra(
  [{ path }, ...others]: BandFile[],
  { pixels, width, height }: ZonePixels,
): Float64Array[] {
  const count = 1 + others.length;
  return withOpenTile(path, (handle, cog) => {
    const [level] = cog.levels;
    if (level.width !== width || level.height !== height || cog.bands !== count)
      throw new Error(`it has ${cog.bands} bands of ${level.width} x ${level.height} pixels`);
    const out = Array.from({ length: count }, () => new Float64Array(pixels.columns.length));
    for (const { block, first, last, order, places } of pixelsByBlock(pixels.columns, pixels.rows, cog))
      for (const [band, found] of readBlockOfAllBands(handle, cog, block, last + 1, first).entries())
        for (let n = 0; n < order.length; n++) out[band][order[n]] = found[places[n]];
    return out;
  });
}
