/** Pixels through gdal_translate, which writes them to a pipe as an uncompressed TIFF; no file lies between. */
import { gdalFailed } from '../errors.js';
import { kernels } from '../kernels-by-type.js';
import { bytesPerSample, pixelsOf } from '../pixels.js';
import type { ReadTarget } from '../read.js';
import type { GdalBlocks, RasterHeader, Window } from '../types.js';
import { formatOfDriver } from './drivers.js';
import { gdalOutput } from './process.js';
import { TiffStream } from './tiff-stream.js';

/** A raster that this reader decodes. */
type GdalHeader = RasterHeader & { blocks: GdalBlocks };

/** Decoded pixels that one process may hold. Bands beyond that are read by another. */
const MAX_CACHE_BYTES = 2 ** 28;

/** Decodes a window of some bands; both lie within the image. */
export async function readWithGdal(
  header: GdalHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { cache } = memoryFor(header, 1, window);
  const atOnce = Math.max(1, Math.floor(MAX_CACHE_BYTES / cache));
  for (let i = 0; i < bands.length; i += atOnce) {
    const arrays = target.arrays.slice(i, i + atOnce);
    await readBands(header, bands.slice(i, i + atOnce), window, { ...target, arrays }, signal);
  }
}

/** Rows that GDAL copies at once from a part of an image, at the least: the blocks of its VRT driver. */
const SWATH_ROWS = 128;
/** GDAL takes no swath below 1 MB. */
const MIN_SWATH_BYTES = 2 ** 20;
/** The cache holds the rows that are written, too. */
const SPARE_MB = 8;

/**
 * Memory that a process needs, in bytes. GDAL copies whole rows only if a row of blocks fits into its swath, and only whole
 * rows can go to a pipe. Its cache must hold all blocks under a swath: else each is decoded for every swath that it touches,
 * and the JPEG 2000 driver opens the file anew for each.
 */
function memoryFor(
  { blocks, dataType }: GdalHeader,
  bands: number,
  { column, row, width }: Window,
): { swath: number; cache: number } {
  const across = Math.ceil((column + width) / blocks.width) - Math.floor(column / blocks.width);
  const rowBytes = across * blocks.width * bytesPerSample(dataType) * bands;
  const swath = Math.max(rowBytes * Math.max(blocks.height, SWATH_ROWS), MIN_SWATH_BYTES);
  const aligned = row % blocks.height === 0 && blocks.height % SWATH_ROWS === 0;
  return { swath, cache: swath + (aligned ? 0 : rowBytes * blocks.height) };
}

async function readBands(
  header: GdalHeader,
  bands: number[],
  window: Window,
  { arrays, offset, stride }: ReadTarget,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { path, dataType, blocks } = header;
  const { width, height } = window;
  const { swath, cache } = memoryFor(header, bands.length, window);
  const put = kernels[dataType].pickSample;
  const stream = new TiffStream(width * bands.length * bytesPerSample(dataType), height, (bytes, row) => {
    const pixels = pixelsOf(dataType, bytes.buffer, bytes.byteOffset, width * bands.length);
    const at = offset + row * stride;
    if (arrays.length === 1) arrays[0].set(pixels, at);
    else for (const [i, out] of arrays.entries()) put(pixels, i, bands.length, out, at, width);
  });
  const output = gdalOutput({
    program: 'gdal_translate',
    args: translateArgs(header, bands, window),
    path,
    format: formatOfDriver(blocks.driver),
    config: {
      GDAL_SWATH_SIZE: String(swath),
      GDAL_CACHEMAX: String(Math.ceil(cache / 2 ** 20) + SPARE_MB),
    },
    signal,
  });
  for await (const chunk of output) {
    const fault = stream.push(chunk);
    if (fault) throw gdalFailed(path, 'gdal_translate', fault, '');
  }
  if (stream.rows < height) throw gdalFailed(path, 'gdal_translate', `${stream.rows} of ${height} rows`, '');
}

function translateArgs({ blocks, dataType }: GdalHeader, bands: number[], window: Window): string[] {
  const { column, row, width, height } = window;
  const options = ['STREAMABLE_OUTPUT=YES', 'BIGTIFF=YES', 'ENDIANNESS=LITTLE', 'PROFILE=GeoTIFF'];
  // A strip must not be written in two goes, and the swaths end where the blocks of the file do.
  options.push('INTERLEAVE=PIXEL', 'COMPRESS=NONE', 'BLOCKYSIZE=1');
  // Else pixels of fewer bits, such as the 15 of Sentinel-2, come packed.
  if (dataType.startsWith('uint')) options.push(`NBITS=${bytesPerSample(dataType) * 8}`);
  return [
    '-q',
    ...['-if', blocks.driver, '-of', 'GTiff'],
    ...options.flatMap((option) => ['-co', option]),
    ...bands.flatMap((band) => ['-b', String(band + 1)]),
    ...['-srcwin', column, row, width, height].map(String),
    ...['-norat', '-nogcp', blocks.dataset, '/vsistdout/'],
  ];
}
