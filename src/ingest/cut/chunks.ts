/** Divides the cells of a pass into chunks whose source rows fit into memory together. */
import type { Grid } from '../../grid/index.js';
import { alignToBlocks, type RasterHeader } from '../../raster/index.js';
import { type RowRange, sourceRowsForCell } from '../cells.js';
import { rowsExceedMemory } from '../errors.js';
import type { SourceGroup } from '../scene.js';
import { alignTo64, rowBytes } from './memory.js';
import { validityBands } from './tasks.js';

/** Cells that are cut together, and the rows of each source that are in memory at that time. */
interface RowChunk {
  geocodes: string[];
  windows: RowRange[];
}

interface Cell {
  geocode: string;
  rows: RowRange[];
}

/** Memory of the window of one band, bytes. */
export function bandBytes(header: RasterHeader, rows: number): number {
  return alignTo64(rows * rowBytes(header));
}

/** Memory of the windows of all bands and validity bands of a source, bytes. */
export function windowBytes(source: SourceGroup, rows: number): number {
  const { bands } = source;
  const { validity } = validityBands(source);
  const validityBytes = validity.reduce((sum, { header }) => sum + bandBytes(header, rows), 0);
  return bandBytes(bands[0].header, rows) * bands.length + validityBytes;
}

const rowCount = ([from, to]: RowRange) => to - from;

/** The largest number of rows in a window of each source. */
export function windowHeights(sources: SourceGroup[], chunks: RowChunk[]): number[] {
  return sources.map((_, i) => chunks.reduce((most, { windows }) => Math.max(most, rowCount(windows[i])), 0));
}

/**
 * Chunks of cells from the top of the image to its bottom, whose windows need at most `budget` bytes. A window starts with its
 * cells and ends at a block boundary, so that a block is decoded once. If not even one cell fits in this way, the window ends
 * with its cells, and the next chunk decodes the blocks there again. Throws TW_INGEST_TOO_LARGE.
 */
export function planChunks(
  path: string,
  sources: SourceGroup[],
  grid: Grid,
  geocodes: string[],
  budget: number,
): RowChunk[] {
  const cells = geocodes.map((geocode) => ({
    geocode,
    rows: sources.map((source) => sourceRowsForCell(source, grid, geocode)),
  }));
  cells.sort((a, b) => a.rows[0][0] - b.rows[0][0] || a.rows[0][1] - b.rows[0][1]);
  const toBlockEnd = (rows: RowRange[]) =>
    rows.map(([from, to], i): RowRange => [from, alignToBlocks(sources[i].bands[0].header, from, to)[1]]);
  const chunks =
    packCells(sources, cells, toBlockEnd, budget) ?? packCells(sources, cells, (rows) => rows, budget);
  if (chunks) return chunks;
  const needed = cells.map(({ rows }) =>
    rows.reduce((sum, span, i) => sum + windowBytes(sources[i], rowCount(span)), 0),
  );
  throw rowsExceedMemory(
    path,
    needed.reduce((most, bytes) => Math.max(most, bytes), 0),
    budget,
  );
}

const joinRanges = (a: RowRange, b: RowRange): RowRange =>
  a[0] === a[1] ? b : b[0] === b[1] ? a : [Math.min(a[0], b[0]), Math.max(a[1], b[1])];

/** Null if one cell alone exceeds the budget. */
function packCells(
  sources: SourceGroup[],
  cells: Cell[],
  windowsOf: (rows: RowRange[]) => RowRange[],
  budget: number,
): RowChunk[] | null {
  /** Heights of the windows of all chunks so far: the memory of each window is fixed for the entire pass. */
  const heights = sources.map(() => 0);
  const fits = (windows: RowRange[]) =>
    windows.reduce(
      (sum, span, i) => sum + windowBytes(sources[i], Math.max(heights[i], rowCount(span))),
      0,
    ) <= budget;
  const chunks: RowChunk[] = [];
  let rows: RowRange[] = [];
  for (const cell of cells) {
    const open = chunks.at(-1);
    if (open) {
      const joined = rows.map((span, i) => joinRanges(span, cell.rows[i]));
      const windows = windowsOf(joined);
      if (fits(windows)) {
        rows = joined;
        open.windows = windows;
        open.geocodes.push(cell.geocode);
        continue;
      }
      for (const [i, span] of open.windows.entries()) heights[i] = Math.max(heights[i], rowCount(span));
    }
    rows = cell.rows;
    const windows = windowsOf(rows);
    if (!fits(windows)) return null;
    chunks.push({ geocodes: [cell.geocode], windows });
  }
  return chunks;
}
