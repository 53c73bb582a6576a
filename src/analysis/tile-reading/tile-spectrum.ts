/** The spectrum of a tile: the file that holds it, and the bands that an analysis takes. */
import { badExpression, parseBandOrExpression, resolveBands, unknownBand } from '../../expressions/index.js';
import { isHyperspectral } from '../../raster/index.js';
import type { BandRecord, GroupRecord, TileRecord } from '../../storage/index.js';

/** Bands of one file of a tile. */
export interface TileSpectrum {
  group: GroupRecord;
  /** The bands that are taken, counted from 0 within the group, in the order of the file. */
  bands: number[];
}

/** A band of an analysis. Wavelengths in nm. Plain JSON. */
export interface AnalysedBand {
  name: string;
  wavelength: number;
  fwhm?: number;
}

/**
 * The spectrum of a tile, null if it has none: all good bands that hold data in the cell, or the bands that are `named`, by name or by
 * wavelength such as `860nm`. Throws TW_IMAGERY_BAND if the tile lacks one of them.
 */
export function tileSpectrum({ groups }: TileRecord, named?: readonly string[]): TileSpectrum | null {
  const [group] = spectralGroups(groups);
  if (!group) return null;
  const all = Array.from(group.bands.keys());
  if (named === undefined) {
    const holdsData = ({ good, validPercent }: BandRecord) => good !== false && validPercent > 0;
    return { group, bands: all.filter((band) => holdsData(group.bands[band]!)) };
  }
  const wanted = new Set(named.map((name) => bandNamed(name, group)));
  return { group, bands: all.filter((band) => wanted.has(band)) };
}

/** Groups that hold spectra, the one with the most bands first. */
export function spectralGroups(groups: readonly GroupRecord[]): GroupRecord[] {
  return groups
    .filter(({ role, bands }) => role === 'data' && isHyperspectral(bands))
    .sort((a, b) => b.bands.length - a.bands.length);
}

/** Throws TW_IMAGERY_BAND, also for an expression. */
function bandNamed(name: string, group: GroupRecord): number {
  try {
    const band = parseBandOrExpression(name, [group]);
    const { indices } = resolveBands([band], [group]);
    if (band.kind === 'band' && indices.length === 1) return indices[0]!.band;
  } catch (error) {
    if (!badExpression.is(error)) throw error;
  }
  throw unknownBand(name, 'an analysis takes names, numbers or wavelengths of bands, not expressions');
}

export function analysedBands({ group, bands }: TileSpectrum): AnalysedBand[] {
  return bands.map((band) => {
    const { name, wavelength, fwhm } = group.bands[band]!;
    return { name, wavelength: wavelength!, ...(fwhm !== undefined && { fwhm }) };
  });
}

/** Two tiles are analysed together if these are equal. */
export const bandSetKey = (spectrum: TileSpectrum): string => JSON.stringify(analysedBands(spectrum));
