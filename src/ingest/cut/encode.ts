/** Encodes the files of one cell, and describes them for the store. */
import { appendFileSync, truncateSync } from 'node:fs';
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
  type ImageFile,
  isHyperspectral,
  Mask,
  maskHistogram,
  type PixelArray,
  type PlacedImage,
  spectralTags,
} from '../../raster/index.js';
import type { GroupRecord } from '../../storage/index.js';
import { countNegative } from './negative-reflectances.js';
import type { CellBand, CellFile, CellGroup, CellImage, CutResult, MaskFigures } from './tasks.js';
import { type GroupValidity, packValidity, pixelValidity, validPercents } from './validity.js';
import type { WarpedFile, WarpedGroup } from './warp.js';

/** Encodes the groups of a file and, if there is one, the mask of the tile. */
export function encodeFile(cells: CellGroup[], { groups, mask }: WarpedFile): CutResult {
  const images = cells.map((cell, i) => imageOf(cell, groups[i]!));
  if (!mask) {
    const validity = cells.flatMap((cell, i) =>
      cell.role === 'data' ? [packValidity(cell, pixelValidity(groups[i]!.valid, cell.bands))] : [],
    );
    return { file: joinFile(images), validity, mask: null };
  }
  const { reference, codes, coverage } = mask;
  const cell = cells[reference]!;
  const { bands, valid } = groups[reference]!;
  const { image, ...figures } = encodeMask(cell, codes);
  return {
    file: joinFile([...images, image]),
    validity: [],
    mask: { ...figures, coverage },
    negative: countNegative(cell.bands, bands, valid, codes),
  };
}

/** Joins images of one pixel size into a file, which is named after the first one. */
function joinFile(images: CellImage[]): CellFile {
  const placed = images.map(({ bytes }) => placedImage(bytes));
  return { ...placedFile(images, placed), bytes: ownBytes(Buffer.concat(images.map(({ bytes }) => bytes))) };
}

const placedImage = (bytes: Uint8Array): PlacedImage => ({ bytes: bytes.length, crc32: crc32(bytes) });

/** The records of images at their places in a file, which is named after the first one. */
export function placedFile(
  images: Pick<CellImage, 'record'>[],
  placed: PlacedImage[],
): Omit<CellFile, 'bytes'> {
  const { name } = images[0]!.record;
  return { name, groups: images.map(({ record }, i) => ({ ...record, file: name, ...placed[i]! })) };
}

/** Joins the images of a tile into files, one for each pixel size. The records have the order of `images`. */
export function joinTile(images: CellImage[]): { files: Omit<CellFile, 'groups'>[]; groups: GroupRecord[] } {
  const bySize = new Map<string, CellImage[]>();
  for (const image of images) {
    const size = `${image.record.width} ${image.record.height}`;
    bySize.set(size, [...(bySize.get(size) ?? []), image]);
  }
  const files = [...bySize.values()].map(joinFile);
  const groups = new Map(files.flatMap((file) => file.groups.map((group) => [group.name, group])));
  return {
    files: files.map(({ name, bytes }) => ({ name, bytes })),
    groups: images.map(({ record }) => groups.get(record.name)!),
  };
}

/** Replaces the last image of a file, which begins at byte `start`. Returns its record. Throws system errors. */
export function replaceLastImage({ path, start }: ImageFile, image: CellImage, file: string): GroupRecord {
  truncateSync(path, start);
  appendFileSync(path, image.bytes);
  return { ...image.record, file, ...placedImage(image.bytes) };
}

/** Encodes a file of groups without data. */
export function encodeEmptyFile(cells: CellGroup[]): CutResult {
  const groups = cells.map((cell) => {
    const size = cell.width * cell.height;
    const value = fillValueFor(cell.dataType, cell.nodata ?? undefined);
    const empty = allocatePixels(cell.dataType, size).fill(value);
    const none = new Uint8Array(size);
    return { bands: cell.bands.map(() => empty), valid: cell.bands.map(() => none) };
  });
  return encodeFile(cells, { groups, mask: null });
}

/** Encodes a group. */
export function encodeGroup(
  cell: CellGroup,
  warped: WarpedGroup,
): { image: CellImage; validity: GroupValidity } {
  return {
    image: imageOf(cell, warped),
    validity: packValidity(cell, pixelValidity(warped.valid, cell.bands)),
  };
}

function imageOf(cell: CellGroup, warped: WarpedGroup): CellImage {
  const valid = warped.valid.map((band) => (band?.includes(0) ? band : null));
  const bytes = encodePixels(cell, warped.bands, valid);
  return { bytes, record: imageRecord(cell, validPercents(valid)) };
}

function encodePixels(cell: CellGroup, bands: PixelArray[], valid: BandValidity[]): Buffer {
  const masks = masksOf(cell, valid);
  if (isHyperspectral(cell.bands)) {
    const image = cubeImage(cell);
    return encodeCube(image, bands, masks ?? (image.masks > 0 ? [allValid(cell)] : []));
  }
  const overviews = cell.resampling === 'bilinear' ? 'mean' : 'nearest';
  return encodeCog({ ...imageFacts(cell), bands, masks, overviews });
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
export function imageRecord(cell: CellGroup, validPercent: number[]): CellImage['record'] {
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
  };
}

/** True if the first bands are a picture for every viewer: red, green and blue in bytes. */
function isPicture({ dataType, bands }: CellGroup): boolean {
  return dataType === 'uint8' && ['red', 'green', 'blue'].every((name, i) => bands[i]?.commonName === name);
}

/** Encodes mask codes of the size of the cell's group. */
export function encodeMask(cell: CellGroup, codes: Uint8Array): MaskFigures & { image: CellImage } {
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
  const bytes = encodeCog({ ...facts, bands: [codes], overviews: 'nearest' });
  const record = { ...imageRecord(mask, [coveragePercent(histogram)]), role: 'mask' as const };
  const withData = codes.length - histogram[Mask.nodata]!;
  const dataParts = partsWithData(codes, cell);
  const share = (code: number) => (100 * histogram[code]!) / withData;
  return {
    image: { bytes, record },
    cloudCover: cloudCoverPercent(histogram),
    ...(histogram[Mask.estimated]! > 0 && { estimated: share(Mask.estimated) }),
    ...(histogram[Mask.otherDate]! > 0 && { otherDates: share(Mask.otherDate) }),
    shares: { notAssessed: share(Mask.notAssessed), stillCloud: share(Mask.cloud) + share(Mask.shadow) },
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

/** Copies small buffers: they lie in a pool of Node, which cannot be transferred to another thread. */
function ownBytes(file: Buffer): Uint8Array<ArrayBuffer> {
  const own = file.buffer instanceof ArrayBuffer && file.byteLength === file.buffer.byteLength;
  return own ? new Uint8Array(file.buffer as ArrayBuffer) : Uint8Array.from(file);
}
