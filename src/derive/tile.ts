/** Reads the groups of a stored tile, describes groups of new tiles by them, and counts the share of a group that holds data. */
import type { PixelGrid } from '../grid/index.js';
import type { CellGroup } from '../ingest/index.js';
import {
  declaredNodata,
  isHyperspectral,
  nodataAsType,
  openRaster,
  type PixelArray,
  type RasterHeader,
  readWindow,
  type SpectralTags,
  spectralTags,
} from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import { noMask } from './errors.js';
import type { NewTile, TileFiles } from './tasks.js';

export type TileGroupFile = TileFiles['groups'][number];

interface GroupImage {
  group: TileGroupFile;
  header: RasterHeader;
  bands: PixelArray[];
}

export async function readGroup(group: TileGroupFile): Promise<GroupImage> {
  const header = await openRaster(group.path);
  const bands = Array.from(group.bands.keys());
  const { width, height } = header;
  return { group, header, bands: await readWindow(header, bands, { column: 0, row: 0, width, height }) };
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
export function maskRecord(tile: TileFiles): TileGroupFile {
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
