/** Reads pixels of TIFFs: block by block, or with a library where the codec is a rare one. */
import { closeSync, openSync } from 'node:fs';
import { TilewrightError } from '../../errors.js';
import { decodeBlock, isFastCodec, samplesPerBlock, type TiffHeader } from '../blocks.js';
import { corrupt, rasterUnreadable } from '../errors.js';
import { kernels } from '../kernels-by-type.js';
import { storedNodata } from '../pixels.js';
import type { PixelArray, ReadTarget, Window } from '../types.js';

/** Decodes a window of some bands; both lie within the image. */
export async function readTiff(
  header: TiffHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
): Promise<void> {
  if (isFastCodec(header.blocks.compression)) readBlocks(header, bands, window, target);
  else await readByLibrary(header, bands, window, target);
}

function readBlocks(header: TiffHeader, bands: number[], window: Window, target: ReadTarget): void {
  const { width, height, planar } = header.blocks;
  const file = openForBlocks(header.path);
  try {
    for (let row = Math.floor(window.row / height); row * height < window.row + window.height; row++) {
      for (
        let column = Math.floor(window.column / width);
        column * width < window.column + window.width;
        column++
      ) {
        let block = planar ? undefined : decodeBlock(file, header, column, row, 0);
        for (const [i, band] of bands.entries()) {
          if (planar) block = decodeBlock(file, header, column, row, band);
          copyBlock(block, header, column, row, planar ? 0 : band, window, target, i);
        }
      }
    }
  } finally {
    closeSync(file);
  }
}

function openForBlocks(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw rasterUnreadable.because(error, path, error);
  }
}

/** Copies the part of a block that lies in the window; a block that was never written counts as nodata. */
function copyBlock(
  block: PixelArray | undefined,
  header: TiffHeader,
  column: number,
  row: number,
  sample: number,
  window: Window,
  { arrays, offset, stride }: ReadTarget,
  index: number,
): void {
  const { blocks } = header;
  const left = Math.max(window.column, column * blocks.width);
  const right = Math.min(window.column + window.width, (column + 1) * blocks.width);
  const top = Math.max(window.row, row * blocks.height);
  const bottom = Math.min(window.row + window.height, (row + 1) * blocks.height);
  const samples = samplesPerBlock(header);
  const out = arrays[index];
  const width = right - left;
  for (let y = top; y < bottom; y++) {
    const to = offset + (y - window.row) * stride + left - window.column;
    if (!block) {
      out.fill(storedNodata(header.dataType, header.nodata) ?? 0, to, to + width);
      continue;
    }
    const from = ((y - row * blocks.height) * blocks.width + left - column * blocks.width) * samples;
    if (samples === 1) out.set(block.subarray(from, from + width), to);
    else kernels[header.dataType].pickSample(block, from + sample, samples, out, to, width);
  }
}

/** Colours as brightness and two differences from it, as JPEG mostly stores them. */
const YCBCR = 6;

/** In place: ITU-R BT.601, the default of TIFF. */
function convertToRgb([first, second, third]: PixelArray[]): void {
  const clamp = (value: number) => Math.min(255, Math.max(0, Math.round(value)));
  for (let i = 0; i < first.length; i++) {
    const y = first[i];
    const blue = second[i] - 128;
    const red = third[i] - 128;
    first[i] = clamp(y + 1.402 * red);
    second[i] = clamp(y - 0.344136 * blue - 0.714136 * red);
    third[i] = clamp(y + 1.772 * blue);
  }
}

/** Rare codecs: JPEG, packbits, zstd, LERC. */
async function readByLibrary(
  header: TiffHeader,
  bands: number[],
  { column, row, width, height }: Window,
  { arrays, offset, stride }: ReadTarget,
): Promise<void> {
  // Loaded when first needed: it is large, and most files do without.
  const { fromFile } = await import('geotiff');
  try {
    const tiff = await fromFile(header.path);
    try {
      const image = await tiff.getImage(header.blocks.directory);
      const window = [column, row, column + width, row + height];
      const inYcc = image.fileDirectory.getValue('PhotometricInterpretation') === YCBCR;
      const samples = inYcc ? [0, 1, 2] : bands;
      const rasters = (await image.readRasters({ window, samples, interleave: false })) as PixelArray[];
      if (inYcc) convertToRgb(rasters);
      for (const [i, out] of arrays.entries()) {
        const pixels = rasters[inYcc ? bands[i] : i];
        for (let y = 0; y < height; y++) {
          out.set(pixels.subarray(y * width, (y + 1) * width), offset + y * stride);
        }
      }
    } finally {
      tiff.close();
    }
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw corrupt.because(error, header.path, `rows ${row}-${row + height} cannot be decoded`);
  }
}
