/**
 * Reads the spectra of a stored tile, and of the tiles around it, block by block, so that memory holds one block of all bands. Runs in
 * worker threads and child processes.
 */
import {
  type BandFile,
  isClear,
  readBlockOfAllBands,
  readCellValues,
  readMaskBlock,
  type TileGeoTiff,
  withOpenTile,
} from '../imagery/index.js';
import { type DataType, type ImageFile, includesNumber, Mask, type PixelArray } from '../raster/index.js';

/** The image of a spectrum. Plain data. */
export interface SpectrumFile extends ImageFile {
  width: number;
  height: number;
  dataType: DataType;
  /** The stored value for no data; NaN if there is none. NaN never counts as data. */
  nodata: number;
  /** The bands that are read, counted from 0, and their encoding: physical value = stored * scale + offset. */
  bands: number[];
  scales: number[];
  offsets: number[];
  mask: BandFile | undefined;
}

/** A block of pixels. Its arrays are valid until the next block is read. */
export interface SpectrumBlock {
  /** Position of the first pixel in the tile, and size of the part that lies in the tile. */
  column: number;
  row: number;
  width: number;
  height: number;
  /** Pixels from one row of the arrays to the next. */
  stride: number;
  /** Stored numbers, one array for each band. */
  bands: PixelArray[];
  /** Positions in the arrays of the pixels that are clear and have data in every band, ascending. */
  indexes: Int32Array;
}

/** Number of a pixel in a tile of this width, row by row. `index`: its position in the arrays of the block. */
export function pixelNumber(
  { row, column, stride }: Pick<SpectrumBlock, 'row' | 'column' | 'stride'>,
  index: number,
  width: number,
): number {
  return (row + Math.floor(index / stride)) * width + column + (index % stride);
}

/** Physical values of all bands of a pixel of a block. */
export function spectrumAt(
  bands: readonly PixelArray[],
  index: number,
  { scales, offsets }: Pick<SpectrumFile, 'scales' | 'offsets'>,
): number[] {
  return bands.map((band, b) => band[index] * scales[b] + offsets[b]);
}

/**
 * Visits the blocks that contain pixels which are clear and have data in every band. `wanted` is 0 for pixels of the tile that are skipped,
 * row by row; blocks without other pixels are not read. Throws TW_IMAGERY_TILE_FILE and the errors of `visit`.
 */
export function eachBlock(
  file: SpectrumFile,
  visit: (block: SpectrumBlock) => void,
  wanted?: Uint8Array,
): void {
  if (wanted?.every((one) => one === 0)) return;
  const codes = readMaskCodes(file);
  // Errors of `visit`, such as a full disk, must not be reported as an unreadable file.
  const failures: unknown[] = [];
  const visitBlock = (block: SpectrumBlock) => {
    try {
      visit(block);
    } catch (error) {
      failures.push(error);
      throw error;
    }
  };
  const readBlocks = (handle: number, cog: TileGeoTiff) => {
    const [level] = cog.levels;
    const { width, height } = file;
    if (level?.width !== width || level.height !== height || Math.max(...file.bands) >= cog.bands)
      throw new Error(`it has ${cog.bands} bands of ${level?.width} x ${level?.height} pixels`);
    const { blockWidth, blockHeight } = level;
    let memory: ArrayBufferLike | undefined;
    for (let row = 0, block = 0; row < height; row += blockHeight)
      for (let column = 0; column < width; column += blockWidth, block++) {
        const extent = {
          column,
          row,
          stride: blockWidth,
          width: Math.min(blockWidth, width - column),
          height: Math.min(blockHeight, height - row),
        };
        const clear = clearPixels(extent, width, codes, wanted);
        if (clear.length === 0) continue;
        const all = readBlockOfAllBands(handle, cog, block, extent.height, 0, memory);
        memory = all[0].buffer;
        const bands = file.bands.map((band) => all[band]);
        const masks = (cog.maskCount > 1 ? file.bands : cog.masks.map(() => 0)).map((band) =>
          readMaskBlock(handle, cog, { level: 0, band, block }, extent.height),
        );
        const indexes = withData(clear, bands, masks, file.nodata);
        if (indexes.length > 0) visitBlock({ ...extent, bands, indexes });
      }
  };
  try {
    withOpenTile(file, readBlocks);
  } catch (error) {
    throw failures.length > 0 ? failures[0] : error;
  }
}

/** Mask codes of all pixels of the tile; undefined if it has no mask. */
export function readMaskCodes({ mask, width, height }: Pick<SpectrumFile, 'mask' | 'width' | 'height'>) {
  if (!mask) return undefined;
  return Uint8Array.from(readCellValues(mask, width, height));
}

function clearPixels(
  { column, row, width, height, stride }: Omit<SpectrumBlock, 'bands' | 'indexes'>,
  tileWidth: number,
  codes: Uint8Array | undefined,
  wanted: Uint8Array | undefined,
): Int32Array {
  const indexes = new Int32Array(width * height);
  let count = 0;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const at = (row + y) * tileWidth + column + x;
      if (isClear(codes?.[at] ?? Mask.clear) && wanted?.[at] !== 0) indexes[count++] = y * stride + x;
    }
  return indexes.subarray(0, count);
}

/** Removes pixels that lack data in some band, in place. `masks`: 0 for pixels without data. */
function withData(
  indexes: Int32Array,
  bands: readonly PixelArray[],
  masks: readonly Uint8Array[],
  hole: number,
): Int32Array {
  const isFloat = bands[0] instanceof Float32Array || bands[0] instanceof Float64Array;
  // Most blocks of integers have no hole; a search finds that out faster.
  const suspects = isFloat ? bands : bands.filter((band) => includesNumber(band, hole));
  const incomplete = masks.filter((mask) => mask.includes(0));
  if (suspects.length === 0 && incomplete.length === 0) return indexes;
  const lacks = new Uint8Array(indexes.length);
  for (const band of suspects)
    for (let i = 0; i < indexes.length; i++) {
      const value = band[indexes[i]];
      if (value === hole || (isFloat && !Number.isFinite(value))) lacks[i] = 1;
    }
  for (const mask of incomplete)
    for (let i = 0; i < indexes.length; i++) if (mask[indexes[i]] === 0) lacks[i] = 1;
  let count = 0;
  for (let i = 0; i < indexes.length; i++) if (lacks[i] === 0) indexes[count++] = indexes[i];
  return indexes.subarray(0, count);
}

/** A tile of the same scene that windows reach into. */
export interface Neighbour {
  file: SpectrumFile;
  /** Cells from the tile to the neighbour, to the east and to the south. */
  east: number;
  south: number;
}

/** A block of a tile or of a neighbour. */
interface NeighbourBlock extends SpectrumBlock {
  file: SpectrumFile;
  /** Positions of a pixel of the block in the widened tile, row by row. A wider pixel has several. */
  positionsOf(index: number): number[];
}

/**
 * Visits the blocks of a tile that is widened by `reach` pixels on every side, if they contain pixels that are clear and have data in every
 * band. `wanted` is 0 for positions of the widened tile that are skipped, row by row. Throws TW_IMAGERY_TILE_FILE.
 */
export function eachBlockWithNeighbours(
  file: SpectrumFile,
  around: readonly Neighbour[],
  { reach, wanted }: { reach: number; wanted?: Uint8Array },
  visit: (block: NeighbourBlock) => void,
): void {
  const width = file.width + 2 * reach;
  for (const { file: one, east, south } of [{ file, east: 0, south: 0 }, ...around]) {
    const columns = axisPositions(east, file.width, one.width, reach);
    const rows = axisPositions(south, file.height, one.height, reach);
    const positionsOf = (row: number, column: number) =>
      rows[row].flatMap((y) => columns[column].map((x) => y * width + x)).filter((at) => wanted?.[at] !== 0);
    const read = new Uint8Array(one.width * one.height);
    for (const [row, above] of rows.entries()) {
      const isWanted = above.some((y) => !wanted || wanted.subarray(y * width, (y + 1) * width).includes(1));
      if (!isWanted) continue;
      for (const [column, beside] of columns.entries()) {
        const isRead = beside.length > 0 && (!wanted || positionsOf(row, column).length > 0);
        read[row * one.width + column] = Number(isRead);
      }
    }
    eachBlock(
      one,
      (block) => {
        const { row, column, stride } = block;
        visit({
          ...block,
          file: one,
          positionsOf: (index) => positionsOf(row + Math.floor(index / stride), column + (index % stride)),
        });
      },
      read,
    );
  }
}

/** Visits the same pixels one by one, with their positions and physical values. The values are valid until the next call. */
export function eachPixelWithNeighbours(
  file: SpectrumFile,
  around: readonly Neighbour[],
  of: { reach: number; wanted?: Uint8Array },
  visit: (positions: number[], spectrum: Float64Array) => void,
): void {
  const spectrum = new Float64Array(file.bands.length);
  eachBlockWithNeighbours(file, around, of, ({ bands, indexes, file: { scales, offsets }, positionsOf }) => {
    for (const index of indexes) {
      for (const [b, band] of bands.entries()) spectrum[b] = band[index] * scales[b] + offsets[b];
      visit(positionsOf(index), spectrum);
    }
  });
}

/**
 * For each pixel of a neighbour along one axis: the pixels of the widened tile whose centres it contains. Cells in a row of the grid have
 * pixels of one size. In a column of geohash cells the number of pixels across may differ; then the nearest pixel is taken.
 */
function axisPositions(cells: number, own: number, other: number, reach: number): number[][] {
  const positions = Array.from({ length: other }, () => [] as number[]);
  for (let at = 0; at < own + 2 * reach; at++)
    positions[Math.floor(((at - reach - cells * own + 0.5) * other) / own)]?.push(at);
  return positions;
}
