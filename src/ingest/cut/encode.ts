/** Encodes the files of one cell, and describes them for the store. */
import { crc32 } from 'node:zlib';
import { gridByName, type PixelGrid, partsWithData } from '../../grid/index.js';
import {
  allocatePixels,
  type BandValidity,
  type CubeImage,
  cloudCoverPercent,
  convexHull,
  coveragePercent,
  declaredNodata,
  encodeCog,
  encodeCube,
  fillValueFor,
  type ImageDescription,
  isHyperspectral,
  Mask,
  maskHistogram,
  type PixelArray,
  spectralTags,
} from '../../raster/index.js';
import type { GroupRecord } from '../../storage/index.js';
import { countNegative } from './negative-reflectances.js';
import type { CellBand, CellFile, CellGroup, CutResult, MaskResult } from './tasks.js';
import { emptyValidity, packValidity, pixelValidity, validPercents } from './validity.js';
import type { WarpedGroup } from './warp.js';

/** Encodes the group and, if there is one, the mask of the tile. */
export function encodeTile(cell: CellGroup, { bands, mask, ...pixels }: WarpedGroup): CutResult {
  const valid = pixels.valid.map((band) => (band?.includes(0) ? band : null));
  return {
    file: encodeGroup(cell, bands, valid),
    validity: packValidity(cell, pixelValidity(valid, cell.bands)),
    mask: mask && { ...encodeMaskFile(cell, mask.codes), coverage: mask.coverage },
    negative: countNegative(cell.bands, bands, valid, mask?.codes),
  };
}

/** Encodes a group without data. */
export function encodeEmptyTile(cell: CellGroup): CutResult {
  const size = cell.width * cell.height;
  const empty = allocatePixels(cell.dataType, size).fill(
    fillValueFor(cell.dataType, cell.nodata ?? undefined),
  );
  const none = new Uint8Array(size);
  const bands = cell.bands.map(() => empty);
  const file = encodeGroup(
    cell,
    bands,
    bands.map(() => none),
  );
  return { file, validity: emptyValidity(cell), mask: null };
}

function encodeGroup(cell: CellGroup, bands: PixelArray[], valid: BandValidity[]): CellFile {
  const masks = masksOf(cell, valid);
  const overviews = cell.resampling === 'bilinear' ? 'mean' : 'nearest';
  const image = isHyperspectral(cell.bands) ? cubeImage(cell) : undefined;
  const encoded = image
    ? encodeCube(image, bands, masks ?? (image.masks > 0 ? [allValid(cell)] : []))
    : encodeCog({ ...imageFacts(cell), bands, masks, overviews });
  const bytes = ownBytes(encoded);
  return { bytes, record: groupRecord(cell, validPercents(valid), checksums(bytes)) };
}

/** The masks of a file without a nodata value, in which only masks can mark missing pixels; undefined if none is missing. */
function masksOf(cell: CellGroup, valid: BandValidity[]): Uint8Array[] | undefined {
  if (!hasNoNodataValue(cell)) return undefined;
  const [first, ...others] = valid;
  if (others.every((band) => isSameValidity(band, first!))) return first ? [first] : undefined;
  return valid.map((band) => band ?? allValid(cell));
}

const allValid = ({ width, height }: PixelGrid) => new Uint8Array(width * height).fill(1);

const isSameValidity = (a: BandValidity, b: BandValidity) =>
  a === b || (a !== null && b !== null && Buffer.compare(a, b) === 0);

/** Returns the layout of a cube's file. */
export function cubeImage(cell: CellGroup): CubeImage {
  const bands = cell.bands.length;
  const masks = hasNoNodataValue(cell) ? (cell.maskOfEachBand ? bands : 1) : 0;
  return { ...imageFacts(cell), bands, masks, isCompressed: cell.compressed ?? false };
}

/** The masks of a cube without a nodata value. `valid`: of each band. */
export function cubeMasks(cell: CellGroup, valid: BandValidity[]): Uint8Array[] {
  const masks = cell.maskOfEachBand ? valid : [valid[0]!];
  return masks.map((mask) => mask ?? allValid(cell));
}

function hasNoNodataValue({ nodata, dataType }: CellGroup): boolean {
  return declaredNodata(dataType, nodata) === undefined;
}

function imageFacts(cell: CellGroup): ImageDescription {
  const { grid, geocode, width, height, dataType, nodata, colours, metadata } = cell;
  const cells = gridByName(grid);
  const { west, south, east, north } = cells.bounds(geocode);
  return {
    width,
    height,
    dataType,
    nodata: declaredNodata(dataType, nodata),
    colours,
    rgb: isPicture(cell),
    bandTags: cell.bands.map(({ name, scale, offset, ...tags }) => ({
      description: name,
      scale,
      offset,
      ...spectralTags(tags),
    })),
    epsg: cells.epsg,
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / width,
      pixelHeight: (north - south) / height,
    },
    metadata: { ...metadata, ...classItems(cell.bands) },
  };
}

/** TIFF has no tag for the names of classes. */
function classItems(bands: readonly CellBand[]): Record<string, string> {
  const classes = bands.flatMap((band) => band.classes ?? []);
  return Object.fromEntries(classes.map(({ value, name }) => [`CLASS_${value}`, name]));
}

/** `validPercent`: for each band. */
export function groupRecord(
  cell: CellGroup,
  validPercent: number[],
  sums: Pick<GroupRecord, 'bytes' | 'crc32'>,
): GroupRecord {
  const { name, role, dataType, width, height, nodata, resampling } = cell;
  // Spectra are cut by nearest neighbour, so that they stay measured ones. They are not codes.
  const isCodes = role === 'data' && resampling === 'nearest' && !isHyperspectral(cell.bands);
  return {
    name,
    role,
    dataType,
    width,
    height,
    nodata,
    ...(isCodes && { codes: true as const }),
    bands: cell.bands.map(({ name, commonName, scale, offset, classes, ...tags }, i) => ({
      name,
      ...(commonName && { commonName }),
      ...(classes && { classes }),
      scale,
      offset,
      ...spectralTags(tags),
      validPercent: validPercent[i],
    })),
    ...sums,
  };
}

/** True if the first bands are a picture for every viewer: red, green and blue in bytes. */
function isPicture({ dataType, bands }: CellGroup): boolean {
  return dataType === 'uint8' && ['red', 'green', 'blue'].every((name, i) => bands[i]?.commonName === name);
}

/** Encodes mask codes of the size of the cell's group. */
export function encodeMaskFile(cell: CellGroup, codes: Uint8Array): MaskResult {
  const histogram = maskHistogram(codes);
  const mask = {
    ...cell,
    name: 'mask',
    role: 'qa' as const,
    dataType: 'uint8' as const,
    nodata: Mask.nodata,
    colours: undefined,
    bands: [{ name: 'mask', scale: 1, offset: 0 }],
  };
  const facts = { ...imageFacts(mask), bandTags: [{ description: 'mask' }] };
  const bytes = ownBytes(encodeCog({ ...facts, bands: [codes], overviews: 'nearest' }));
  const record = {
    ...groupRecord(mask, [coveragePercent(histogram)], checksums(bytes)),
    role: 'mask' as const,
  };
  const withData = codes.length - histogram[Mask.nodata]!;
  const dataParts = partsWithData(codes, cell);
  const share = (code: number) => (100 * histogram[code]!) / withData;
  return {
    file: { bytes, record },
    cloudCover: cloudCoverPercent(histogram),
    ...(histogram[Mask.estimated]! > 0 && { estimated: share(Mask.estimated) }),
    ...(histogram[Mask.otherDate]! > 0 && { otherDates: share(Mask.otherDate) }),
    footprint: footprintOf(cell, codes),
    ...(dataParts !== undefined && { dataParts }),
  };
}

function footprintOf({ grid, geocode, width, height }: CellGroup, codes: Uint8Array): [number, number][] {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  return (convexHull(codes, width, height) ?? []).map(([column, row]) => [
    west + ((east - west) * column) / width,
    north - ((north - south) * row) / height,
  ]);
}

const checksums = (bytes: Uint8Array) => ({ bytes: bytes.length, crc32: crc32(bytes) });

/** Copies small buffers: they lie in a pool of Node, which cannot be transferred to another thread. */
function ownBytes(file: Buffer): Uint8Array<ArrayBuffer> {
  const own = file.buffer instanceof ArrayBuffer && file.byteLength === file.buffer.byteLength;
  return own ? new Uint8Array(file.buffer as ArrayBuffer) : Uint8Array.from(file);
}
