/**
 * The mask of an image: another image of the same size in the file that marks the pixels with data (TIFF 6.0, section 8:
 * NewSubfileType 4). GDAL writes it with one bit per pixel and calls it PER_DATASET.
 */
import { lstat } from 'node:fs/promises';
import { TilewrightError } from '../../errors.js';
import { rasterUnreadable, unsupported } from '../errors.js';
import { type ByteReader, detectFileType, type SourceFile, withFile } from '../file-access/index.js';
import type { RasterHeader } from '../raster-types.js';
import { type Ifd, readIfd } from './read-tiff-ifd.js';
import { blockLayout, type ImageShape } from './tiff-block-layout.js';
import { ALL_TAGS, TAG } from './tiff-tags.js';

/** The tags that identify a mask. The offsets of the blocks of all overviews would be many. */
const SIZE_TAGS = new Set<number>([TAG.subfileType, TAG.width, TAG.height]);

/** NewSubfileType of a mask of the full image. Overviews have masks of their own (5). */
const MASK = 4;
/** Limit of the directories to search: images, their overviews and their masks. */
const MAX_IFDS = 1024;

/** Header of a mask without georeferencing. */
type MaskHeader = Omit<RasterHeader, 'crs' | 'transform'>;

/**
 * Searches the directories from byte `first` on. Adds to `warnings` if a directory cannot be read. Throws TW_RASTER_TRUNCATED,
 * _CORRUPT and _UNSUPPORTED if the mask cannot be read.
 */
export async function findMaskImage(
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
    const isMask = directory.numbers(TAG.subfileType)?.[0] === MASK && hasSizeOf(directory, image);
    if (isMask) return headerOf(await readIfd(file, ALL_TAGS, at), number, image);
    at = directory.next;
  }
  return undefined;
}

/** The path of the mask file of a raster. */
export const maskPath = (path: string) => `${path}.msk`;

/**
 * The mask in the file of the same name and `.msk`, which GDAL writes for formats and options without an internal mask.
 * Undefined if there is no such file or its image has another size. Adds to `warnings` in the latter case, and if the file is
 * not a TIFF. Throws TW_RASTER_UNREADABLE, _TRUNCATED, _CORRUPT and _UNSUPPORTED.
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
    return { ...headerOf(directory, 0, { ...image, path, fileBytes: file.size }), crs, transform };
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
  number: number,
  { path, fileBytes, width, height, bands: imageBands }: ImageShape,
): MaskHeader {
  const bands = directory.numbers(TAG.samplesPerPixel)?.[0] ?? 1;
  const bits = directory.numbers(TAG.bitsPerSample)?.[0] ?? 1;
  if ((bands !== 1 && bands !== imageBands) || (bits !== 1 && bits !== 8))
    throw unsupported(path, `its mask has ${bands} bands of ${bits} bits`);
  const shape = { path, fileBytes, width, height, bands, dataType: 'uint8' as const };
  return {
    ...shape,
    nodata: undefined,
    blocks: blockLayout(directory, number, { ...shape, ...(bits === 1 && { bits: 1 }) }),
    bandTags: [],
    metadata: {},
  };
}
