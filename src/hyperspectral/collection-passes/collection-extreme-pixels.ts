/** The pixels of all runs of a job at which functions of the spectrum are largest. */

import { gridByName } from '../../grid/index.js';
import { createTransform, crsFromEpsg } from '../../raster/index.js';
import type { TileRecord } from '../../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../jobs/index.js';
import type { SpectrumFile } from '../spectrum-reading/index.js';
import type { Extreme } from '../tile-passes/index.js';

export interface ExtremePixel extends Extreme {
  /** Id of its tile. */
  tile: string;
  /** Longitude and latitude of its centre, degrees. Absent if an older node found it. */
  position?: [number, number];
}

export const LON_LAT_SCHEMA = { type: 'array', items: NUMBER, minItems: 2, maxItems: 2 };
const PIXEL = objectOf(
  { value: NUMBER, pixel: COUNT, tile: TEXT, spectrum: listOf(NUMBER) },
  { position: LON_LAT_SCHEMA },
);
const checkPixels = messageCheck(listOf({ anyOf: [{ type: 'null' }, PIXEL] }));

/**
 * Returns one pixel for each of `rows` functions, null if no tile has one. Ties go to the first tile and pixel in order, so the result does
 * not depend on the distribution of the tiles. `search` finds the pixels of one tile.
 */
export async function extremePixels(
  analysed: AnalysedCollection,
  rows: number,
  search: (tile: TileRecord, file: SpectrumFile) => Promise<readonly (Extreme | undefined)[]>,
): Promise<(ExtremePixel | null)[]> {
  const best = new Array<ExtremePixel | null>(rows).fill(null);
  const take = (found: readonly (ExtremePixel | null | undefined)[]) => {
    for (const [row, one] of found.entries()) if (one && isBefore(one, best[row])) best[row] = one;
  };
  await forEachTile(analysed, async (tile, file) => {
    const found = await search(tile, file);
    take(found.map((one) => one && { ...one, tile: tile.id, position: centreOf(tile, file, one.pixel) }));
  });
  for (const found of await allGatherChecked(analysed.job, best, checkPixels)) take(found);
  return best;
}

function isBefore(a: ExtremePixel, b: ExtremePixel | null | undefined): boolean {
  if (!b || a.value !== b.value) return !b || a.value > b.value;
  return a.tile === b.tile ? a.pixel < b.pixel : a.tile < b.tile;
}

/** Longitude and latitude of the centre of a pixel, counted row by row, to about 0.1 m. */
function centreOf(
  { grid, geocode }: TileRecord,
  { width, height }: SpectrumFile,
  pixel: number,
): [number, number] {
  const { epsg, bounds } = gridByName(grid);
  const { west, south, east, north } = bounds(geocode);
  const x = west + (((pixel % width) + 0.5) / width) * (east - west);
  const y = north - ((Math.floor(pixel / width) + 0.5) / height) * (north - south);
  const [longitude, latitude] = createTransform(crsFromEpsg(epsg), 'EPSG:4326')(x, y);
  return [Number(longitude.toFixed(6)), Number(latitude.toFixed(6))];
}
