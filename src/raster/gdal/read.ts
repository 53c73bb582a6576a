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

/** Decoded blocks that one process may hold. Bands beyond that are read by another. */
const MAX_CACHE_BYTES = 2 ** 28;

/** Decodes a window of some bands; both lie within the image. */
export async function readWithGdal(
  header: GdalHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
  signal: AbortSignal | undefined,
): Promise<void> {
  const bandBytes = cachedBytes(header, window);
  const atOnce = Math.max(1, Math.floor(MAX_CACHE_BYTES / bandBytes));
  for (let i = 0; i < bands.length; i += atOnce) {
    const arrays = target.arrays.slice(i, i + atOnce);
    await readBands(header, bands.slice(i, i + atOnce), window, { ...target, arrays }, signal);
  }
}

/** Bytes of the blocks of one band that one row of the window touches; two rows of blocks where it starts within one. */
function cachedBytes({ blocks, dataType }: GdalHeader, { column, row, width, height }: Window): number {
  const across = Math.ceil((column + width) / blocks.width) - Math.floor(column / blocks.width);
  const down = Math.ceil((row + height) / blocks.height) - Math.floor(row / blocks.height);
  const rows = Math.min(down, row % blocks.height === 0 ? 1 : 2);
  return across * rows * blocks.width * blocks.height * bytesPerSample(dataType);
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
    config: memoryConfig(cachedBytes(header, window) * bands.length),
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

/**
 * GDAL copies in swaths of whole rows only if a row of blocks fits into a swath, and only whole rows can go to a pipe. The
 * cache must hold the same blocks, or the JPEG 2000 driver opens the file anew for each.
 */
function memoryConfig(blockBytes: number): Record<string, string> {
  const swath = Math.max(blockBytes, 2 ** 20);
  return { GDAL_SWATH_SIZE: String(swath), GDAL_CACHEMAX: `${Math.ceil(swath / 2 ** 20) + 1}MB` };
}
