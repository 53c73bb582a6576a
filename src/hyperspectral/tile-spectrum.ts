/** The spectrum of a tile: its file, the bands that an analysis reads, and the spectra of the tiles around it. */

import { findNeighbourTiles, type NeighbourTile, tilesOutOfReach } from '../derive/index.js';
import { badExpression, parseBandOrExpression, resolveBands, unknownBand } from '../expressions/index.js';
import { maskFile } from '../imagery/index.js';
import type { TileFinder } from '../query/index.js';
import { isHyperspectral, nodataAsType } from '../raster/index.js';
import type { BandRecord, GroupRecord, Storage, TileRecord } from '../storage/index.js';
import type { Neighbour, SpectrumFile } from './blocks.js';

/** Bands of one file of a tile. */
export interface TileSpectrum {
  group: GroupRecord;
  /** The bands that an analysis reads, counted from 0 within the group, in the order of the file. */
  bands: number[];
}

/** A band of an analysis. Wavelengths in nm. Plain JSON. */
export interface AnalysedBand {
  name: string;
  wavelength: number;
  fwhm?: number;
}

/**
 * The spectrum of a tile, null if it has none: all good bands that hold data in the cell, or the `named` bands, by name or by wavelength
 * such as `860nm`. Throws TW_IMAGERY_BAND if the tile lacks one of them.
 */
export function tileSpectrum({ groups }: TileRecord, named?: readonly string[]): TileSpectrum | null {
  const [group] = spectralGroups(groups);
  if (!group) return null;
  const all = Array.from(group.bands.keys());
  if (named === undefined) {
    const holdsData = ({ good, validPercent }: BandRecord) => good !== false && validPercent > 0;
    return { group, bands: all.filter((band) => holdsData(group.bands[band])) };
  }
  const wanted = new Set(named.map((name) => bandNamed(name, group)));
  return { group, bands: all.filter((band) => wanted.has(band)) };
}

/** Groups that contain spectra, the one with the most bands first. */
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
    if (band.kind === 'band' && indices.length === 1) return indices[0].band;
  } catch (error) {
    if (!badExpression.is(error)) throw error;
  }
  throw unknownBand(name, 'an analysis takes names, numbers or wavelengths of bands, not expressions');
}

function analysedBands({ group, bands }: TileSpectrum): AnalysedBand[] {
  return bands.map((band) => {
    const { name, wavelength, fwhm } = group.bands[band];
    return { name, wavelength: wavelength!, ...(fwhm !== undefined && { fwhm }) };
  });
}

/** Tiles with the same key are analysed together. */
export const bandSetKey = (spectrum: TileSpectrum): string => JSON.stringify(analysedBands(spectrum));

/** The file of a spectrum, for worker threads. */
export function spectrumFile(
  storage: Storage,
  tile: TileRecord,
  { group, bands }: TileSpectrum,
): SpectrumFile {
  const { name, width, height, dataType, nodata } = group;
  return {
    ...storage.tileImage(tile, name),
    width,
    height,
    dataType,
    bands,
    nodata: nodataAsType(dataType, nodata ?? undefined) ?? NaN,
    scales: bands.map((band) => group.bands[band].scale),
    offsets: bands.map((band) => group.bands[band].offset),
    mask: maskFile(storage, tile, [{ group: tile.groups.indexOf(group), band: 0 }]),
  };
}

interface NeighbourSpectrum extends NeighbourTile {
  spectrum: TileSpectrum;
}

/** The tiles around a tile that have a spectrum with the same bands; none for a reach of 0. Throws TW_WRANGLE_OUT_OF_REACH. */
export async function findNeighbourSpectra(
  finder: TileFinder,
  tile: TileRecord,
  reach: number,
  spectrumOf: (tile: TileRecord) => TileSpectrum | undefined,
): Promise<NeighbourSpectrum[]> {
  const own = spectrumOf(tile);
  if (reach === 0 || !own) return [];
  const near = await findNeighbourTiles(finder, tile, own.group, reach);
  if (near.unanswered > 0) throw tilesOutOfReach(near.unanswered);
  return near.tiles.flatMap((one) => {
    const spectrum = spectrumOf(one.tile);
    return spectrum ? [{ ...one, spectrum }] : [];
  });
}

/** The files of the neighbours, for threads and processes. */
export function neighbourFiles(storage: Storage, around: readonly NeighbourSpectrum[]): Neighbour[] {
  return around.map(({ tile, spectrum, east, south }) => ({
    file: spectrumFile(storage, tile, spectrum),
    east,
    south,
  }));
}
