/** Reads the groups of a stored tile, and describes groups of new tiles by them. */
import type { PixelGrid } from '../grid/index.js';
import type { CellGroup } from '../ingest/index.js';
import {
  type BandValidity,
  declaredNodata,
  isHyperspectral,
  nodataAsType,
  type PixelArray,
  type RasterHeader,
  readImage,
  spectralTags,
} from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import { noMask } from './errors.js';
import type { NewTile, TileFiles } from './tasks.js';

export type TileGroup = TileFiles['groups'][number];

export interface GroupImage {
  group: TileGroup;
  header: RasterHeader;
  bands: PixelArray[];
  /** The pixels of each band that hold data. */
  valid: BandValidity[];
}

export async function readGroup(group: TileGroup): Promise<GroupImage> {
  return { group, ...(await readImage(group)) };
}

/**
 * How far masks are widened. The default is the width of the rims of clouds that masks miss: at the first pixel outside of them, the red
 * reflectance of the sample pairs in `docs/explanation/validation.md` is too high by less than 0.01.
 */
export const DILATION_SCHEMA = {
  type: 'number',
  minimum: 0,
  maximum: 10_000,
  default: 90,
  description:
    'Metres by which masks of cloud and shadow are widened before pixels are replaced, at least one pixel; 0 for not at all',
};

export async function readMask(tile: TileFiles): Promise<GroupImage & { codes: Uint8Array }> {
  const image = await readGroup(maskRecord(tile));
  return { ...image, codes: image.bands[0] as Uint8Array };
}

/** The record of a tile's mask. Throws TW_WRANGLE_NO_MASK. */
export function maskRecord(tile: TileFiles): TileGroup {
  const mask = tile.groups.find(({ role }) => role === 'mask');
  if (!mask) throw noMask(tile.geocode);
  return mask;
}

/** All groups except the mask. */
export function imageGroups<G extends Pick<GroupRecord, 'role'>>({ groups }: { groups: G[] }): G[] {
  return groups.filter(({ role }) => role !== 'mask');
}

/** Value of the TIFF tag Compression. */
const UNCOMPRESSED = 1;

/** The stored value for no data; undefined if every value is data. */
export function nodataValue({
  dataType,
  nodata,
}: Pick<GroupRecord, 'dataType' | 'nodata'>): number | undefined {
  return nodataAsType(dataType, declaredNodata(dataType, nodata));
}

/** Describes a group of a new tile with the bands of `group`, at another size if one is given. */
export function cellGroup(
  { grid, geocode, metadata }: NewTile,
  { group, header }: Pick<GroupImage, 'group' | 'header'>,
  { width, height }: PixelGrid = group,
): CellGroup {
  const { name, role, dataType, nodata, bands } = group;
  const codes = role !== 'data' || group.codes === true || header.palette;
  return {
    grid,
    geocode,
    width,
    height,
    name,
    role: role === 'mask' ? 'qa' : role,
    resampling: codes || isHyperspectral(bands) ? 'nearest' : 'bilinear',
    dataType,
    nodata,
    colours: header.colours,
    bands: bands.map(({ name, commonName, scale, offset, classes, ...tags }) => ({
      name,
      commonName,
      scale,
      offset,
      ...(classes && { classes }),
      ...spectralTags(tags),
    })),
    metadata,
    compressed: header.blocks.reader !== 'tiff' || header.blocks.compression !== UNCOMPRESSED,
  };
}
