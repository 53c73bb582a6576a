/** The stored files of the bands of a tile, and single-band Cloud Optimized GeoTIFFs for programs that read one band per file. */
import type { BandIndex } from '../expressions/index.js';
import { gridByName } from '../grid/index.js';
import {
  type AssembledFile,
  declaredNodata,
  extractBand,
  type ImageFile,
  Mask,
  nodataAsType,
  spectralTags,
} from '../raster/index.js';
import type { GroupRecord, Storage, TileRecord } from '../storage/index.js';
import { type TileGeoTiff, withOpenTile } from './tile-geotiff.js';

/** One band of an image of a tile file, and its encoding: physical value = stored * scale + offset. Plain data. */
export interface BandFile extends ImageFile {
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

/** True for the mask codes clear, estimated, other date and not assessed; false for cloud, shadow, snow and no data. */
export const isClear = (code: number) =>
  code === Mask.clear || code === Mask.estimated || code === Mask.otherDate || code === Mask.notAssessed;

/** True for groups of codes such as classes and quality flags. They describe pixels themselves, so no mask applies to them. */
export const isCodeGroup = ({ codes, role }: GroupRecord) => codes === true || role !== 'data';

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
  return { ...storage.tileImage(tile, name), band, width, height, hole, scale, offset };
}

/**
 * The mask that applies to these bands of a tile. Undefined if the tile has no mask; then every pixel counts as not assessed. Also
 * undefined if all bands are codes, because codes such as classes and quality flags describe pixels themselves.
 */
export function maskFile(storage: Storage, tile: TileRecord, places: BandIndex[]): BandFile | undefined {
  if (places.length > 0 && places.every(({ group }) => isCodeGroup(tile.groups[group]))) return undefined;
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

/** The form of the files that `buildSingleBandCog` makes. It changes when the bytes for a tile change, because ETags contain it. */
export const SINGLE_BAND_FORMAT = 1;

/** A Cloud Optimized GeoTIFF of band number `band`, from 0, of the group's `image`. Throws TW_IMAGERY_TILE_FILE. */
export function buildSingleBandCog(
  { grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>,
  group: GroupRecord,
  band: number,
  image: ImageFile,
): AssembledFile {
  const { epsg, bounds } = gridByName(grid);
  const { west, south, east, north } = bounds(geocode);
  const { width, height, dataType, nodata } = group;
  const { name, scale, offset, ...tags } = group.bands[band];
  const facts = {
    width,
    height,
    dataType,
    epsg,
    nodata: declaredNodata(dataType, nodata),
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / width,
      pixelHeight: (north - south) / height,
    },
    bandTags: [{ description: name, scale, offset, ...spectralTags(tags) }],
  };
  return withOpenTile(image, (_, { levels, masks, maskCount }) =>
    extractBand(
      facts,
      levels.map((level) => blocksOf(level, band)),
      masks.map((mask) => blocksOf(mask, maskCount > 1 ? band : 0)),
    ),
  );
}

function blocksOf({ perBand, offsets, byteCounts, ...level }: TileGeoTiff['levels'][number], band: number) {
  const start = band * perBand;
  const end = start + perBand;
  return { ...level, offsets: offsets.subarray(start, end), byteCounts: byteCounts.subarray(start, end) };
}
