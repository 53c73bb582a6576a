/** Reads the header of a GeoTIFF, and masks: images in the same file, or in a file of the same name and `.msk`. */
import { lstat } from 'node:fs/promises';
import { TilewrightError } from '../../errors.js';
import { isInvertible } from '../crs/crs.js';
import { convertTo, corrupt, noCrs, rasterUnreadable, unsupported } from '../errors.js';
import {
  type GeoreferencingOverride,
  georeferenceByCorners,
  type Pam,
  parseGdalMetadata,
  placeWithPam,
} from '../metadata.js';
import { DATA_TYPES, parseNodata } from '../pixels/data-types.js';
import type { Affine, DataType, RasterHeader } from '../raster.js';
import {
  type ByteReader,
  detectFileType,
  requireSupportedSize,
  type SourceFile,
  withFile,
} from '../source.js';
import { crsFromGeoKeys, type GeoKeys, parseGeoKeys, pixelIsPoint } from './tiff-geo-keys.js';
import { ALL_TAGS, blockLayout, type Ifd, type ImageShape, readIfd, TAG } from './tiff-ifd.js';

/** The tags that identify a mask. The offsets of the blocks of all overviews would be many. */
const SIZE_TAGS = new Set<number>([TAG.subfileType, TAG.width, TAG.height]);

/** NewSubfileType of a mask of the full image. Overviews have masks of their own (5). */
const MASK_SUBFILE = 4;
/** Limit of the directories to search: images, their overviews and their masks. */
const MAX_IFDS = 1024;

/** Header of a mask without georeferencing. */
type MaskHeader = Omit<RasterHeader, 'crs' | 'transform'>;

/**
 * The mask of an image: another image of the same size in the file that marks the pixels with data (TIFF 6.0, section 8: NewSubfileType 4).
 * GDAL writes it with one bit per pixel and calls it PER_DATASET. Searches the directories from byte `first` on. Adds to `warnings` if a
 * directory cannot be read. Throws TW_RASTER_TRUNCATED, _CORRUPT and _UNSUPPORTED if the mask cannot be read.
 */
async function findMaskImage(
  file: SourceFile<ByteReader>,
  first: number,
  image: ImageShape,
  warnings: string[],
): Promise<MaskHeader | undefined> {
  const seen = new Set<number>();
  for (let at = first, number = 1; at !== 0 && number < MAX_IFDS; number++) {
    if (seen.has(at)) break;
    seen.add(at);
    const directory = await readIfd(file, SIZE_TAGS, at).catch((error) => {
      if (!(error instanceof TilewrightError)) throw error;
      warnings.push(`image ${number + 1} of the file cannot be read, so a mask in it is not used`);
      return undefined;
    });
    if (!directory) return undefined;
    const isMask = directory.numbers(TAG.subfileType)?.[0] === MASK_SUBFILE && hasSizeOf(directory, image);
    if (isMask) return headerOf(await readIfd(file, ALL_TAGS, at), image);
    at = directory.next;
  }
  return undefined;
}

/** The path of the mask file of a raster. */
export const maskPath = (path: string) => `${path}.msk`;

/**
 * Reads the mask in the file of the same name and `.msk`, which GDAL writes for formats and options without an internal mask.
 * Returns undefined if this file does not exist. If the file is a link or not a TIFF, or its image has another size, returns
 * undefined and adds a warning to `warnings`. Throws TW_RASTER_UNREADABLE, _TRUNCATED, _CORRUPT and _UNSUPPORTED.
 */
export async function openExternalMask(
  image: RasterHeader,
  warnings: string[],
): Promise<RasterHeader | undefined> {
  const path = maskPath(image.path);
  const kind = await kindOf(path);
  if (kind === 'link') warnings.push(`${path} is a link, so it is not used as a mask`);
  if (kind !== 'file') return undefined;
  return withFile(path, async (file) => {
    if (detectFileType(file.start) !== 'tiff') {
      warnings.push(`${path} is not a TIFF, so it is not used as a mask`);
      return undefined;
    }
    const directory = await readIfd(file, ALL_TAGS);
    if (!hasSizeOf(directory, image)) {
      const [width, height] = [TAG.width, TAG.height].map((tag) => directory.numbers(tag)?.[0]);
      warnings.push(
        `${path} is not used as a mask: it has ${width} x ${height} pixels, and the image has ${image.width} x ${image.height}`,
      );
      return undefined;
    }
    const { crs, transform } = image;
    return { ...headerOf(directory, { ...image, path, fileBytes: file.size }), crs, transform };
  });
}

/** Links are not followed: they could lead out of an allowed folder. */
async function kindOf(path: string): Promise<'file' | 'link' | undefined> {
  try {
    const info = await lstat(path);
    return info.isFile() ? 'file' : info.isSymbolicLink() ? 'link' : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw rasterUnreadable.because(error, path, error);
  }
}

function hasSizeOf(directory: Ifd, { width, height }: Pick<ImageShape, 'width' | 'height'>): boolean {
  return directory.numbers(TAG.width)?.[0] === width && directory.numbers(TAG.height)?.[0] === height;
}

function headerOf(
  directory: Ifd,
  { path, fileBytes, width, height, bands: imageBands }: ImageShape,
): MaskHeader {
  const bands = directory.numbers(TAG.samplesPerPixel)?.[0] ?? 1;
  const bits = directory.numbers(TAG.bitsPerSample)?.[0] ?? 1;
  if ((bands !== 1 && bands !== imageBands) || (bits !== 1 && bits !== 8))
    throw unsupported(
      path,
      `its mask has ${bands} bands of ${bits} bits`,
      'Write it without the mask: gdal_translate -mask none IN OUT.tif.',
    );
  const shape = { path, fileBytes, width, height, bands, dataType: 'uint8' as const };
  return {
    ...shape,
    nodata: undefined,
    blocks: blockLayout(directory, { ...shape, ...(bits === 1 && { bits: 1 }) }),
    bandTags: [],
    metadata: {},
  };
}

/** PhotometricInterpretation of images with a colour table. */
const PALETTE_COLOUR = 3;

/**
 * Reads the header of a GeoTIFF. `position` replaces its georeferencing; `pam` supplies what it lacks. Throws
 * TW_RASTER_TRUNCATED, _CORRUPT, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function readTiffHeader(
  file: SourceFile<ByteReader>,
  position?: GeoreferencingOverride,
  pam?: Pam,
): Promise<RasterHeader> {
  const { path, size } = file;
  const directory = await readIfd(file, ALL_TAGS);
  const one = (tag: number, otherwise: number) => directory.numbers(tag)?.[0] ?? otherwise;
  const width = one(TAG.width, 0);
  const height = one(TAG.height, 0);
  const bands = one(TAG.samplesPerPixel, 1);
  if (!(width > 0 && height > 0 && bands > 0))
    throw corrupt(path, `its size is ${width} x ${height} x ${bands}`);
  requireSupportedSize(path, width, height, bands);
  const dataType = dataTypeOf(directory, path);
  const shape = { path, fileBytes: size, width, height, bands, dataType };
  const blocks = blockLayout(directory, shape);
  const keys = parseGeoKeys(
    directory.numbers(TAG.geoKeys) ?? [],
    directory.numbers(TAG.geoDoubles) ?? [],
    directory.text(TAG.geoText) ?? '',
  );
  const palette = one(TAG.photometric, 1) === PALETTE_COLOUR;
  const colours = palette && dataType === 'uint8' ? directory.numbers(TAG.colourMap) : undefined;
  const { interpretations, warnings, ...described } = parseGdalMetadata(
    directory.text(TAG.gdalMetadata) ?? '',
    bands,
    path,
  );
  const alpha = findAlphaBand(directory, bands, interpretations);
  const mask = await findMaskImage(file, directory.next, shape, warnings);
  const place = position
    ? georeferenceByCorners(position, { path, width, height })
    : placeWithPam(
        { crs: () => crsFromGeoKeys(keys, path), transform: () => transformOf(directory, keys, path) },
        pam,
      );
  return {
    ...shape,
    ...place,
    nodata: parseNodata(directory.text(TAG.gdalNodata), dataType, warnings),
    palette,
    ...(colours?.length === 768 && { colours }),
    ...(alpha !== undefined && { alpha }),
    ...(mask && { mask: { ...mask, ...place } }),
    blocks,
    ...described,
    warnings,
    dateTime: directory.text(TAG.dateTime),
  };
}

function dataTypeOf(directory: Ifd, path: string): DataType {
  const bits = new Set(directory.numbers(TAG.bitsPerSample) ?? [1]);
  const formats = new Set(directory.numbers(TAG.sampleFormat) ?? [1]);
  if (bits.size > 1 || formats.size > 1)
    throw unsupported(
      path,
      'its bands are of different data types',
      'Write its bands as one data type with the program that made it; GDAL does not read such a file.',
    );
  const [bit] = bits;
  const [format] = formats;
  // 4 is "undefined", which readers treat as unsigned.
  const name = `${{ 1: 'uint', 2: 'int', 3: 'float', 4: 'uint' }[format ?? 0]}${bit}`;
  const dataType = DATA_TYPES.find((known) => known === name);
  if (dataType) return dataType;
  const kind =
    { 1: 'unsigned', 2: 'signed', 3: 'floating point', 5: 'complex', 6: 'complex' }[format ?? 0] ?? 'unknown';
  throw unsupported(path, `its pixels are ${bit}-bit ${kind} numbers`, adviceFor(bit ?? 1, kind));
}

/** The command for each kind of number. GDAL keeps the bits of a source unless NBITS sets others. */
function adviceFor(bits: number, kind: string): string {
  if (kind === 'complex') return `${convertTo(bits > 64 ? 'Float64' : 'Float32')} This keeps the real part.`;
  if (bits === 64) return `${convertTo('Float64')} Integers beyond 2^53 are rounded.`;
  if (kind === 'floating point') return convertTo('Float32', 32);
  const size = bits <= 8 ? 8 : bits <= 16 ? 16 : 32;
  return convertTo(size === 8 ? 'Byte' : `${kind === 'signed' ? '' : 'U'}Int${size}`, size);
}

/** ExtraSamples: associated alpha (premultiplied colours), or unassociated alpha. */
const ASSOCIATED_ALPHA = 1;
const UNASSOCIATED_ALPHA = 2;

/**
 * The band that GDAL treats as alpha: ExtraSamples describes the last samples of a pixel, and GDAL's own metadata takes
 * precedence.
 */
function findAlphaBand(
  directory: Ifd,
  bands: number,
  interpretations: (string | undefined)[],
): number | undefined {
  if (bands === 1) return undefined;
  const extra = directory.numbers(TAG.extraSamples) ?? new Float64Array();
  const isAlpha = (band: number) => {
    const noted = interpretations[band];
    if (noted !== undefined) return noted === 'alpha';
    const kind = extra[band - (bands - extra.length)];
    return kind === ASSOCIATED_ALPHA || kind === UNASSOCIATED_ALPHA;
  };
  const alpha = interpretations.findIndex((_, band) => isAlpha(band));
  return alpha === -1 ? undefined : alpha;
}

function transformOf(directory: Ifd, keys: GeoKeys, path: string): Affine {
  const corner = transformFromTiepoint(directory);
  if (!corner) {
    const points = (directory.numbers(TAG.tiepoints)?.length ?? 0) / 6;
    throw noCrs(
      path,
      points > 0 ? `it has ${points} control points but no pixel size` : 'it has no position',
    );
  }
  if (!isInvertible(corner)) throw noCrs(path, 'its pixels have no extent');
  if (!pixelIsPoint(keys)) return corner;
  return {
    ...corner,
    originX: corner.originX - 0.5 * (corner.xx + corner.xy),
    originY: corner.originY - 0.5 * (corner.yx + corner.yy),
  };
}

function transformFromTiepoint(directory: Ifd): Affine | undefined {
  const m = directory.numbers(TAG.transformation);
  const scale = directory.numbers(TAG.pixelScale);
  const tie = directory.numbers(TAG.tiepoints);
  // A file may have only one of the two forms. As GDAL, ignores the matrix of a file with both.
  if (!scale || !tie || scale.length < 2 || tie.length < 6)
    return m && m.length >= 8
      ? { originX: m[3], originY: m[7], xx: m[0], xy: m[1], yx: m[4], yy: m[5] }
      : undefined;
  const xx = scale[0];
  // Rows run south. A negative scale is a known mistake of writers, and its sign is ignored, as in GDAL.
  const yy = -Math.abs(scale[1]);
  return { originX: tie[3] - tie[0] * xx, originY: tie[4] - tie[1] * yy, xx, xy: 0, yx: 0, yy };
}
