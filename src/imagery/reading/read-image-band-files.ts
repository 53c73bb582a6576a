/** The stored files of bands. */

import type { BandIndex } from '../../expressions/index.js';
import { Mask, nodataAsType } from '../../raster/index.js';
import type { GroupRecord, Storage, TileRecord } from '../../storage/index.js';

/** One band of a stored file, and its encoding: physical value = stored * scale + offset. Plain data. */
export interface BandFile {
  path: string;
  /** Index, from 0. */
  band: number;
  /** Size of the full image, in pixels. */
  width: number;
  height: number;
  /** The nodata value; NaN if there is none. Stored NaN never count as data. */
  hole: number;
  scale: number;
  offset: number;
}

/** The physical value of a stored number of a band; NaN for no data. */
export const physicalValue = (
  stored: number,
  { hole, scale, offset }: Pick<BandFile, 'hole' | 'scale' | 'offset'>,
): number => (stored === hole ? NaN : stored * scale + offset);

/** True for the mask codes clear, filled and not assessed; false for cloud, shadow, snow and no data. */
export const isClear = (code: number) =>
  code === Mask.clear || code === Mask.filled || code === Mask.notAssessed;

/** Returns the file of a band. `nodata` replaces the nodata value of the band. */
export function bandFile(
  storage: Storage,
  tile: TileRecord,
  { group, band }: BandIndex,
  nodata?: number,
): BandFile {
  const { name, bands, dataType, width, height, nodata: own } = tile.groups[group];
  const { scale, offset } = bands[band];
  const hole = nodataAsType(dataType, nodata ?? own ?? undefined) ?? NaN;
  return { path: storage.tilePath(tile, name), band, width, height, hole, scale, offset };
}

/**
 * The mask that applies to these bands of a tile. Undefined if the tile has no mask; then every pixel counts as not assessed. Also
 * undefined if all bands are codes, because codes such as classes and quality flags describe pixels themselves.
 */
export function maskFile(storage: Storage, tile: TileRecord, places: BandIndex[]): BandFile | undefined {
  const isCode = ({ codes, role }: GroupRecord) => codes === true || role !== 'data';
  if (places.length > 0 && places.every(({ group }) => isCode(tile.groups[group]))) return undefined;
  const group = tile.groups.findIndex(({ role }) => role === 'mask');
  return group < 0 ? undefined : { ...bandFile(storage, tile, { group, band: 0 }), hole: NaN };
}

/** The groups of a tile that contain bands, and its mask if `withMask` is set. */
export function groupsOf({ groups }: TileRecord, places: BandIndex[], withMask = false): GroupRecord[] {
  const wanted = new Set(places.map(({ group }) => groups[group]));
  const mask = withMask && groups.find(({ role }) => role === 'mask');
  if (mask) wanted.add(mask);
  return [...wanted];
}

/** The files of bands of one tile. `nodata` replaces the nodata values of the groups. */
export function bandFiles(
  storage: Storage,
  tile: TileRecord,
  places: BandIndex[],
  nodata?: number,
): BandFile[] {
  return places.map((place) => bandFile(storage, tile, place, nodata));
}
