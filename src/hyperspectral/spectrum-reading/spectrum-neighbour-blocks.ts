/** The pixels of a tile and of its neighbours. Runs in worker threads and child processes. */
import { eachBlock, type SpectrumBlock, type SpectrumFile } from './read-spectrum-blocks.js';

/** A tile of the same scene that windows reach into. */
export interface Neighbour {
  file: SpectrumFile;
  /** Cells from the tile to the neighbour, to the east and to the south. */
  east: number;
  south: number;
}

/** A block of a tile or of a neighbour. */
export interface NeighbourBlock extends SpectrumBlock {
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
