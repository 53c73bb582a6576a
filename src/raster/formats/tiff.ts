/** Reads pixels of TIFFs block by block, and finds the blocks that a window needs, for copies of remote files that hold only these. */
import { closeSync, openSync } from 'node:fs';
import { libraryCodec } from '../codecs/libraries.js';
import { rasterUnreadable } from '../errors.js';
import { nodataAsType } from '../pixels/data-types.js';
import { typedKernels } from '../pixels/masks.js';
import type { PixelArray, RasterHeader, ReadTarget, TiffBlocks, Window } from '../raster.js';
import { decodeBlock, decodeJpegBlock, samplesPerBlock, type TiffHeader } from './tiff-blocks.js';

/** Decodes a window of some bands; both must lie within the image. */
export async function readTiff(
  header: TiffHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
): Promise<void> {
  const { blocks } = header;
  const codec = await libraryCodec(blocks);
  const file = openForBlocks(header.path);
  const copy = (block: PixelArray | undefined, [column, row]: [number, number], band: number, i: number) =>
    copyBlock(block, header, column, row, blocks.planar ? 0 : band, window, target, i);
  try {
    for (const place of blocksIn(window, blocks)) {
      const decode = (band: number) => decodeBlock(file, header, ...place, band, codec);
      // Other blocks are decoded into memory that all reads of the thread share, so nothing may be awaited between them.
      const decodeJpeg = (band: number) => decodeJpegBlock(file, header, ...place, band);
      const whole = blocks.planar ? undefined : blocks.jpeg ? await decodeJpeg(0) : decode(0);
      for (const [i, band] of bands.entries()) {
        if (!blocks.planar) copy(whole, place, band, i);
        else copy(blocks.jpeg ? await decodeJpeg(band) : decode(band), place, band, i);
      }
    }
  } finally {
    closeSync(file);
  }
}

/** Columns and rows of the blocks that touch a window. */
function* blocksIn(window: Window, { width, height }: TiffBlocks): Generator<[column: number, row: number]> {
  const right = window.column + window.width;
  const bottom = window.row + window.height;
  for (let row = Math.floor(window.row / height); row * height < bottom; row++)
    for (let column = Math.floor(window.column / width); column * width < right; column++)
      yield [column, row];
}

function openForBlocks(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw rasterUnreadable.because(error, path, error);
  }
}

/** Copies the part of a block that lies in the window. A block that was never written counts as nodata. */
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
      out.fill(nodataAsType(header.dataType, header.nodata) ?? 0, to, to + width);
      continue;
    }
    const from = ((y - row * blocks.height) * blocks.width + left - column * blocks.width) * samples;
    if (samples === 1) out.set(block.subarray(from, from + width), to);
    else typedKernels[header.dataType].deinterleave(block, from + sample, samples, out, to, width);
  }
}

/** Narrows a header to that of a TIFF. */
export const isTiff = (header: RasterHeader): header is TiffHeader => header.blocks.reader === 'tiff';

/** Returns the indexes of the blocks that hold pixels of some bands within a window. */
export function blocksOfWindow(
  { width, height, blocks }: TiffHeader,
  bands: number[],
  window: Window,
): number[] {
  const across = Math.ceil(width / blocks.width);
  const perBand = across * Math.ceil(height / blocks.height);
  const found: number[] = [];
  const right = window.column + window.width;
  const bottom = window.row + window.height;
  for (let row = Math.floor(window.row / blocks.height); row * blocks.height < bottom; row++)
    for (let column = Math.floor(window.column / blocks.width); column * blocks.width < right; column++)
      for (const band of blocks.planar ? bands : [0]) found.push(band * perBand + row * across + column);
  return found;
}

/** Returns a header in which all blocks but the given ones count as never written, so that they are read as nodata. */
export function withOnlyBlocks<Header extends Pick<TiffHeader, 'blocks'>>(
  header: Header,
  kept: ReadonlySet<number>,
): Header {
  const byteCounts = Float64Array.from(header.blocks.byteCounts, (count, i) => (kept.has(i) ? count : 0));
  return { ...header, blocks: { ...header.blocks, byteCounts } };
}
