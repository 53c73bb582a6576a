/** Reads pixels through gdal_translate, which writes an uncompressed TIFF to a pipe, without a temporary file. */
import { gdalFailed } from '../errors.js';
import { bytesPerSample, typedKernels, viewPixels } from '../pixels/index.js';
import type { GdalBlocks, HeaderOf, ReadRequest, Window } from '../raster-types.js';
import { formatOfGdalDriver } from './gdal-drivers.js';
import { type StreamedImage, TiffStreamParser } from './gdal-tiff-stream.js';
import { runGdal } from './run-gdal.js';

type GdalHeader = HeaderOf<GdalBlocks>;
export type GdalReadRequest = ReadRequest & { header: GdalHeader };

/** Decoded pixels that one process may hold. Other processes read more bands. */
const MAX_CACHE_BYTES = 2 ** 28;

/** Decodes windows of one raster or more, in order. The bands and windows must lie within the images. */
export async function readViaGdal(reads: GdalReadRequest[], signal: AbortSignal | undefined): Promise<void> {
  const parts = reads.flatMap(splitByCacheSize);
  const memory = parts.map(({ header, bands, window }) => memoryFor(header, bands.length, window));
  const stream = new TiffStreamParser(parts.map(imageOf));
  const output = runGdal({
    program: 'gdal_translate',
    calls: parts.map((part) => ({
      args: translateArgs(part),
      path: part.header.path,
      format: formatOfGdalDriver(part.header.blocks.driver),
    })),
    config: {
      GDAL_SWATH_SIZE: String(Math.max(...memory.map(({ swath }) => swath))),
      GDAL_CACHEMAX: String(
        Math.ceil(Math.max(...memory.map(({ cache }) => cache)) / 2 ** 20) + CACHE_RESERVE_MB,
      ),
    },
    signal,
  });
  for await (const chunk of output) {
    const fault = stream.push(chunk);
    if (fault) throw gdalFailed(parts[stream.image].header.path, 'gdal_translate', fault, '');
  }
  const { header, window } = parts[stream.image];
  if (!stream.complete)
    throw gdalFailed(header.path, 'gdal_translate', `${stream.rows} of ${window.height} rows`, '');
}

/** Splits a read of many bands into parts. */
function splitByCacheSize(read: GdalReadRequest): GdalReadRequest[] {
  const { header, bands, window, target } = read;
  const atOnce = Math.max(1, Math.floor(MAX_CACHE_BYTES / memoryFor(header, 1, window).cache));
  const parts: GdalReadRequest[] = [];
  for (let i = 0; i < bands.length; i += atOnce) {
    const arrays = target.arrays.slice(i, i + atOnce);
    parts.push({ ...read, bands: bands.slice(i, i + atOnce), target: { ...target, arrays } });
  }
  return parts;
}

/** GDAL copies at least this many rows at a time from a part of an image: the blocks of its VRT driver. */
const MIN_SWATH_ROWS = 128;
/** GDAL requires a swath of at least 1 MB. */
const MIN_SWATH_BYTES = 2 ** 20;
/** The cache also holds the rows that are written. */
const CACHE_RESERVE_MB = 8;

/**
 * Memory that a process needs, in bytes. GDAL copies complete rows only if a row of blocks fits into its swath, and only
 * complete rows can be written to a pipe. Its cache must hold all blocks of a swath. Otherwise each block is decoded for every
 * swath that it touches, and the JPEG 2000 driver opens the file for each of them.
 */
function memoryFor(
  { blocks, dataType }: GdalHeader,
  bands: number,
  { column, row, width }: Window,
): { swath: number; cache: number } {
  const across = Math.ceil((column + width) / blocks.width) - Math.floor(column / blocks.width);
  const rowBytes = across * blocks.width * bytesPerSample(dataType) * bands;
  const swath = Math.max(rowBytes * Math.max(blocks.height, MIN_SWATH_ROWS), MIN_SWATH_BYTES);
  const aligned = row % blocks.height === 0 && blocks.height % MIN_SWATH_ROWS === 0;
  return { swath, cache: swath + (aligned ? 0 : rowBytes * blocks.height) };
}

function imageOf({
  header: { dataType },
  window: { width, height },
  target,
}: GdalReadRequest): StreamedImage {
  const { arrays, offset, stride } = target;
  const put = typedKernels[dataType].deinterleave;
  const take = (bytes: Uint8Array, row: number) => {
    const pixels = viewPixels(dataType, bytes.buffer, bytes.byteOffset, width * arrays.length);
    const at = offset + row * stride;
    if (arrays.length === 1) arrays[0].set(pixels, at);
    else for (const [i, out] of arrays.entries()) put(pixels, i, arrays.length, out, at, width);
  };
  return { rowBytes: width * arrays.length * bytesPerSample(dataType), height, take };
}

function translateArgs({ header: { blocks, dataType }, bands, window }: GdalReadRequest): string[] {
  const { column, row, width, height } = window;
  const options = ['STREAMABLE_OUTPUT=YES', 'BIGTIFF=YES', 'ENDIANNESS=LITTLE', 'PROFILE=GeoTIFF'];
  // A strip must not be written in two parts, and the swaths end where the blocks of the file do.
  options.push('INTERLEAVE=PIXEL', 'COMPRESS=NONE', 'BLOCKYSIZE=1');
  // Otherwise pixels of fewer bits, such as the 15 of Sentinel-2, are packed.
  if (dataType.startsWith('uint')) options.push(`NBITS=${bytesPerSample(dataType) * 8}`);
  return [
    '-q',
    ...['-if', blocks.driver, '-of', 'GTiff'],
    ...options.flatMap((option) => ['-co', option]),
    ...bands.flatMap((band) => ['-b', String(band + 1)]),
    ...['-srcwin', column, row, width, height].map(String),
    ...['-norat', '-nogcp', '-mask', 'none', blocks.dataset, '/vsistdout/'],
  ];
}
