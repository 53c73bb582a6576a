/** Divides the cells of a scene into runs whose source rows fit into the memory budget together. */
import type { Grid } from '../geocode/index.js';
import { blockRows } from '../raster/index.js';
import { type RowSpan, rowsOfCell } from './cell-rows.js';
import { tooLarge } from './errors.js';
import { rowBytes } from './row-window.js';
import type { Scene } from './scene.js';

/** Cells that are cut together, and for each group of the scene the rows that they read. */
export interface Chunk {
  geocodes: string[];
  rows: RowSpan[];
}

const join = (a: RowSpan, b: RowSpan): RowSpan =>
  a[0] === a[1] ? b : b[0] === b[1] ? a : [Math.min(a[0], b[0]), Math.max(a[1], b[1])];

/** Bytes that the row windows of a scene hold for these spans. */
function bytesOf(scene: Scene, rows: RowSpan[]): number {
  return scene.groups.reduce((sum, group, g) => {
    const { header } = group.bands[0];
    const [start, end] = blockRows(header, ...rows[g]);
    return sum + (end - start) * rowBytes(header) * group.bands.length;
  }, 0);
}

/** Runs of cells from the top of the image to its bottom, each reading at most `budget` bytes of source rows. */
export function planChunks(scene: Scene, grid: Grid, geocodes: string[], budget: number): Chunk[] {
  const cells = geocodes.map((geocode) => ({
    geocode,
    rows: scene.groups.map((group) => rowsOfCell(group, grid, geocode)),
  }));
  cells.sort((a, b) => a.rows[0][0] - b.rows[0][0] || a.rows[0][1] - b.rows[0][1]);
  const chunks: Chunk[] = [];
  let open: Chunk | null = null;
  for (const cell of cells) {
    const joined: RowSpan[] | undefined = open?.rows.map((span, g) => join(span, cell.rows[g]));
    if (open && joined && bytesOf(scene, joined) <= budget) {
      open.rows = joined;
      open.geocodes.push(cell.geocode);
      continue;
    }
    const needed = bytesOf(scene, cell.rows);
    if (needed > budget) throw tooLarge(scene.path, needed, budget);
    open = { geocodes: [cell.geocode], rows: cell.rows };
    chunks.push(open);
  }
  return chunks;
}

/** The most rows that the row window of one group holds at once; it keeps rows that were decoded for an earlier chunk. */
export function windowCapacity(chunks: Chunk[], scene: Scene, group: number): number {
  const { header } = scene.groups[group].bands[0];
  let most = 0;
  let heldEnd = 0;
  for (const chunk of chunks) {
    const [start, end] = blockRows(header, ...chunk.rows[group]);
    heldEnd = heldEnd > start ? Math.max(end, heldEnd) : end;
    most = Math.max(most, heldEnd - start);
  }
  return most;
}
