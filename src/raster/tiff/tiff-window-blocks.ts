/** The blocks of a TIFF that a window needs, for copies of remote files that hold only these. */
import type { RasterHeader, Window } from '../raster-types.js';
import type { TiffHeader } from './read-tiff-block.js';

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
