/** Reads pixels of TIFFs block by block. */
import { closeSync, openSync } from 'node:fs';
import { decodeBlock, samplesPerBlock, type TiffHeader } from '../blocks.js';
import { rasterUnreadable } from '../errors.js';
import { kernels } from '../kernels-by-type.js';
import { storedNodata } from '../pixels.js';
import type { PixelArray, ReadTarget, Window } from '../types.js';
import { type BlockCodec, libraryCodec } from './library-codecs.js';

/** Decodes a window of some bands; both lie within the image. */
export async function readTiff(
  header: TiffHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
): Promise<void> {
  readBlocks(header, bands, window, target, await libraryCodec(header.blocks));
}

function readBlocks(
  header: TiffHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
  codec: BlockCodec | undefined,
): void {
  const { width, height, planar, jpeg } = header.blocks;
  const file = openForBlocks(header.path);
  try {
    for (let row = Math.floor(window.row / height); row * height < window.row + window.height; row++) {
      for (
        let column = Math.floor(window.column / width);
        column * width < window.column + window.width;
        column++
      ) {
        let block = planar ? undefined : decodeBlock(file, header, column, row, 0, codec);
        if (block && jpeg?.isYcbcr) convertToRgb(block);
        for (const [i, band] of bands.entries()) {
          if (planar) block = decodeBlock(file, header, column, row, band, codec);
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

/** In place: ITU-R BT.601, the default of TIFF. */
function convertToRgb(pixels: PixelArray): void {
  const clamp = (value: number) => Math.min(255, Math.max(0, Math.round(value)));
  for (let i = 0; i + 2 < pixels.length; i += 3) {
    const y = pixels[i];
    const blue = pixels[i + 1] - 128;
    const red = pixels[i + 2] - 128;
    pixels[i] = clamp(y + 1.402 * red);
    pixels[i + 1] = clamp(y - 0.344136 * blue - 0.714136 * red);
    pixels[i + 2] = clamp(y + 1.772 * blue);
  }
}
