/**
 * Reads pixels of ENVI images, and spectral libraries. The image file contains raw numbers, interleaved by band (BSQ), by line (BIL) or by
 * pixel (BIP).
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { corrupt, notTiff, rasterUnreadable, truncated, unsupported } from '../errors.js';
import { allocatePixels, bytesPerStored, readStoredNumbers, swapBytes } from '../pixels/data-types.js';
import { typedKernels } from '../pixels/masks.js';
import type { PixelArray, ReadTarget, SpectralLibrary, Window } from '../raster.js';
import { withFile } from '../source.js';
import {
  type EnviRaster,
  findHeader,
  namesField,
  openEnviNumbers,
  readFields,
  readWavelengths,
  reflectanceScale,
} from './envi-header.js';

/** Maximum size of the rows of one band that are read in one call. */
const READ_BUFFER_BYTES = 2 ** 24;

/**
 * Reads a window of some bands into `target`. Bands are numbered from 0. The bands must exist, and the window must be inside the image.
 * Throws TW_RASTER_UNREADABLE and _TRUNCATED.
 */
export function readEnvi(header: EnviRaster, bands: number[], window: Window, target: ReadTarget): void {
  let file: number;
  try {
    file = openSync(header.path, 'r');
  } catch (error) {
    throw rasterUnreadable.because(error, header.path, error);
  }
  const samples = (first: number, count: number) => readSamples(file, header, first, count);
  try {
    READERS[header.blocks.interleave](header, samples, bands, window, target);
  } finally {
    closeSync(file);
  }
}

/** Returns the `count` numbers that begin at number `first` of the image. The array is valid only until the next read. */
type SampleReader = (first: number, count: number) => PixelArray;

const READERS = { bsq: readBsq, bil: readBil, bip: readBip };

function readBsq(
  { width: samples, height: lines, blocks }: EnviRaster,
  read: SampleReader,
  bands: number[],
  { column, row, width, height }: Window,
  { arrays, offset, stride }: ReadTarget,
): void {
  const most = Math.max(1, Math.floor(READ_BUFFER_BYTES / (samples * bytesPerStored(blocks.storedType))));
  for (const [i, band] of bands.entries()) {
    for (let done = 0; done < height; done += most) {
      const rows = Math.min(most, height - done);
      const first = (band * lines + row + done) * samples + column;
      const pixels = read(first, (rows - 1) * samples + width);
      for (let y = 0; y < rows; y++)
        arrays[i]!.set(pixels.subarray(y * samples, y * samples + width), offset + (done + y) * stride);
    }
  }
}

/** For each row, reads all bands from the first to the last requested band at once, because most calls request all of these bands. */
function readBil(
  { width: samples, bands: count }: EnviRaster,
  read: SampleReader,
  bands: number[],
  { column, row, width, height }: Window,
  { arrays, offset, stride }: ReadTarget,
): void {
  const first = Math.min(...bands);
  const span = (Math.max(...bands) - first) * samples + width;
  for (let y = 0; y < height; y++) {
    const pixels = read(((row + y) * count + first) * samples + column, span);
    for (const [i, band] of bands.entries()) {
      const from = (band - first) * samples;
      arrays[i]!.set(pixels.subarray(from, from + width), offset + y * stride);
    }
  }
}

function readBip(
  { width: samples, bands: count, dataType }: EnviRaster,
  read: SampleReader,
  bands: number[],
  { column, row, width, height }: Window,
  { arrays, offset, stride }: ReadTarget,
): void {
  const { deinterleave } = typedKernels[dataType];
  for (let y = 0; y < height; y++) {
    const pixels = read(((row + y) * samples + column) * count, width * count);
    for (const [i, band] of bands.entries())
      deinterleave(pixels, band, count, arrays[i]!, offset + y * stride, width);
  }
}

let reusedBuffer = Buffer.alloc(0);

function readSamples(file: number, { path, blocks }: EnviRaster, first: number, count: number): PixelArray {
  const { storedType, headerOffset, littleEndian } = blocks;
  const size = bytesPerStored(storedType);
  const bytes = count * size;
  if (reusedBuffer.length < bytes) reusedBuffer = Buffer.allocUnsafeSlow(bytes);
  const from = headerOffset + first * size;
  for (let filled = 0; filled < bytes; ) {
    const read = readSync(file, reusedBuffer, filled, bytes - filled, from + filled);
    if (read === 0) throw truncated(path, `it ends before byte ${from + bytes}, which its header requires`);
    filled += read;
  }
  const used = reusedBuffer.subarray(0, bytes);
  if (!littleEndian) swapBytes(used, size);
  return readStoredNumbers(storedType, used.buffer, 0, count);
}

/** Libraries are held in memory. The largest known ones have 20 MB. */
const MAX_LIBRARY_BYTES = 2 ** 28;

/**
 * Reads a spectral library, an image of one band in which each line is a spectrum (file type "ENVI Spectral Library"), by the path of its
 * header or of its image. Throws TW_RASTER_NOT_TIFF if it is not a library, and TW_RASTER_UNREADABLE, _SIZE_DIFFERS, _CORRUPT and
 * _UNSUPPORTED.
 */
export async function readEnviLibrary(path: string): Promise<SpectralLibrary> {
  const header = (await withFile(path, () => findHeader(path))) ?? path;
  const fields = await readFields(header);
  if (!/spectral library/i.test(fields.get('file type') ?? ''))
    throw notTiff(header, 'its file type is not "ENVI Spectral Library"', 'Name a spectral library.');
  const numbers = await openEnviNumbers(fields, header, path === header ? undefined : path);
  const { width, height, bands, dataType } = numbers;
  if (bands !== 1) throw unsupported(header, `a library of ${bands} bands`, 'A library has one band.');
  if (numbers.fileBytes > MAX_LIBRARY_BYTES)
    throw unsupported(header, `a library of ${numbers.fileBytes} bytes`, 'Split it.');
  const spectrum = readWavelengths(fields, width, header);
  if (!spectrum) throw corrupt(header, 'its spectra have no wavelengths');
  const values = allocatePixels(dataType, width * height);
  readEnvi(
    numbers,
    [0],
    { column: 0, row: 0, width, height },
    { arrays: [values], offset: 0, stride: width },
  );
  const warnings = spectrum.warning === undefined ? [] : [spectrum.warning];
  const names = namesField(fields, 'spectra names', height, warnings) ?? [];
  const scale = reflectanceScale(fields, header);
  return {
    wavelengths: spectrum.nanometres,
    spectra: Array.from({ length: height }, (_, line) => ({
      name: names[line] ?? `spectrum ${line + 1}`,
      values: Array.from(values.subarray(line * width, (line + 1) * width), (value) => value * (scale ?? 1)),
    })),
    isScaled: scale !== undefined,
    ...(warnings.length > 0 && { warning: warnings.join('; ') }),
  };
}
