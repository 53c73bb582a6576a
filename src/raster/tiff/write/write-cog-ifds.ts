/** Directories of the GeoTIFFs that tilewright writes: images, their overviews, and masks of one bit per pixel. */
import { isGeographicEpsg } from '../../crs/index.js';
import { gdalMetadataXml } from '../../metadata/index.js';
import { bytesPerSample, isFloat } from '../../pixels/index.js';
import type { BandTags, ColourTable, DataType } from '../../raster-types.js';
import type { IfdEntry } from './write-tiff-ifd.js';

/** Size, type and metadata of an image. */
export interface ImageDescription {
  width: number;
  height: number;
  dataType: DataType;
  /** Outer corner of the upper left pixel, and the size of a pixel; both sizes are positive, north is up. */
  transform: { originX: number; originY: number; pixelWidth: number; pixelHeight: number };
  epsg: number;
  nodata?: number | undefined;
  /** Colours of the codes of a single band of uint8. */
  colours?: ColourTable | undefined;
  /** True if the first three bands are red, green and blue for display. */
  rgb?: boolean;
  bandTags?: BandTags[];
  metadata?: Record<string, string>;
}

/** Blocks of one image of a file. */
export interface StoredBlocks {
  width: number;
  height: number;
  blockWidth: number;
  blockHeight: number;
  /** Band by band, rows of blocks from north to south. */
  offsets: ArrayLike<number>;
  byteCounts: ArrayLike<number>;
  isCompressed: boolean;
}

/** PhotometricInterpretation. */
const BLACK_IS_ZERO = 1;
const RGB = 2;
const PALETTE_COLOUR = 3;
const TRANSPARENCY_MASK = 4;

/** Compression. */
const NO_COMPRESSION = 1;
const DEFLATE = 8;

/** NewSubfileType. */
const REDUCED_RESOLUTION = 1;
const MASK = 4;

/** Tags in ascending order, as TIFF requires. */
export function imageIfd(
  facts: ImageDescription,
  bands: number,
  blocks: StoredBlocks,
  isOverview: boolean,
): IfdEntry[] {
  const { dataType, transform, nodata, colours, rgb } = facts;
  const photometric = colours ? PALETTE_COLOUR : rgb ? RGB : BLACK_IS_ZERO;
  // Samples beyond those of the photometric interpretation.
  const extra = bands - (rgb ? 3 : 1);
  const each = (value: number) => new Array<number>(bands).fill(value);
  const sampleFormat = isFloat(dataType) ? 3 : dataType.startsWith('u') ? 1 : 2;
  const entries: (IfdEntry | false)[] = [
    { tag: 254, type: 'long', value: [isOverview ? REDUCED_RESOLUTION : 0] },
    { tag: 256, type: 'long', value: [blocks.width] },
    { tag: 257, type: 'long', value: [blocks.height] },
    { tag: 258, type: 'short', value: each(bytesPerSample(dataType) * 8) },
    { tag: 259, type: 'short', value: [blocks.isCompressed ? DEFLATE : NO_COMPRESSION] },
    { tag: 262, type: 'short', value: [photometric] },
    { tag: 277, type: 'short', value: [bands] },
    { tag: 284, type: 'short', value: [bands > 1 ? 2 : 1] },
    blocks.isCompressed && { tag: 317, type: 'short', value: [isFloat(dataType) ? 3 : 2] },
    colours !== undefined && { tag: 320, type: 'short', value: colours },
    { tag: 322, type: 'long', value: [blocks.blockWidth] },
    { tag: 323, type: 'long', value: [blocks.blockHeight] },
    { tag: 324, type: 'long', value: blocks.offsets },
    { tag: 325, type: 'long', value: blocks.byteCounts },
    extra > 0 && { tag: 338, type: 'short', value: Array<number>(extra).fill(0) },
    { tag: 339, type: 'short', value: each(sampleFormat) },
  ];
  if (!isOverview) {
    entries.push(
      { tag: 33550, type: 'double', value: [transform.pixelWidth, transform.pixelHeight, 0] },
      { tag: 33922, type: 'double', value: [0, 0, 0, transform.originX, transform.originY, 0] },
      { tag: 34735, type: 'short', value: geoKeys(facts.epsg) },
    );
    const xml = gdalMetadataXml(facts.metadata ?? {}, facts.bandTags ?? []);
    if (xml !== undefined) entries.push({ tag: 42112, type: 'ascii', value: xml });
  }
  if (nodata !== undefined) entries.push({ tag: 42113, type: 'ascii', value: nodataText(nodata) });
  return entries.filter((entry) => entry !== false);
}

/** The directory of a mask: one bit per pixel, always compressed. */
export function maskIfd(blocks: StoredBlocks, isOverview: boolean): IfdEntry[] {
  return [
    { tag: 254, type: 'long', value: [isOverview ? MASK | REDUCED_RESOLUTION : MASK] },
    { tag: 256, type: 'long', value: [blocks.width] },
    { tag: 257, type: 'long', value: [blocks.height] },
    { tag: 258, type: 'short', value: [1] },
    { tag: 259, type: 'short', value: [DEFLATE] },
    { tag: 262, type: 'short', value: [TRANSPARENCY_MASK] },
    { tag: 277, type: 'short', value: [1] },
    { tag: 284, type: 'short', value: [1] },
    { tag: 322, type: 'long', value: [blocks.blockWidth] },
    { tag: 323, type: 'long', value: [blocks.blockHeight] },
    { tag: 324, type: 'long', value: blocks.offsets },
    { tag: 325, type: 'long', value: blocks.byteCounts },
  ];
}

function nodataText(nodata: number): string {
  if (Number.isNaN(nodata)) return 'nan';
  if (!Number.isFinite(nodata)) return nodata > 0 ? 'inf' : '-inf';
  return String(nodata);
}

/** GTModelType, GTRasterType = PixelIsArea, and the EPSG code of the system. */
function geoKeys(epsg: number): number[] {
  const geographic = isGeographicEpsg(epsg);
  const keys: [key: number, value: number][] = [
    [1024, geographic ? 2 : 1],
    [1025, 1],
    [geographic ? 2048 : 3072, epsg],
  ];
  return [1, 1, 0, keys.length, ...keys.flatMap(([key, value]) => [key, 0, 1, value])];
}
