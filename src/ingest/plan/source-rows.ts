/** Which source rows a cell reads. */
import type { Bounds, Grid } from '../../grid/index.js';
import { sourceLocator } from '../georeferencing/grid-to-source.js';
import { imageOf, quartersOf } from '../georeferencing/project-rectangle.js';
import type { SourceGroup } from '../scene.js';

/** Source rows [from, to) of one group; from = to where the cell lies beside the raster. */
export type RowSpan = [from: number, to: number];

/** Rows beyond the exact ones: one for bilinear neighbours, one for the error of the warp's interpolation. */
const MARGIN = 2;
/** A part of a cell that bends by less than this, in pixels, has its extremes at its points. */
const FLAT = 0.5;
/** How often a cell is divided: beyond that only the rim of a map is not flat. */
const MOST_DIVISIONS = 8;

/**
 * All rows between the northernmost and southernmost that any point of the cell falls into: also where these lie within the
 * cell (a pole) or between its corners (a curved parallel). Parts that cannot widen what is known are not looked at closer.
 */
export function rowsOfCell(group: SourceGroup, grid: Grid, geocode: string): RowSpan {
  const { header } = group.bands[0];
  const locate = sourceLocator(grid.epsg, header);
  const clip = (row: number) => Math.max(0, Math.min(header.height, row));
  let low = Infinity;
  let high = -Infinity;
  const widen = (from: number, to: number) => {
    low = Math.min(low, from);
    high = Math.max(high, to);
  };

  const visit = (rect: Bounds, divisions: number) => {
    const { points, top, bottom, bend } = imageOf(rect, locate);
    if (points.length === 0) return;
    if (clip(top - bend.y) >= low && clip(bottom + bend.y) <= high) return;
    if (Math.max(bend.x, bend.y) <= FLAT) return widen(top, bottom);
    if (divisions === MOST_DIVISIONS) {
      const beyond = Math.min(bend.y, bottom - top);
      return widen(top - beyond, bottom + beyond);
    }
    widen(top, bottom);
    for (const quarter of quartersOf(rect)) visit(quarter, divisions + 1);
  };
  visit(grid.bounds(geocode), 0);
  if (low > high) return [0, 0];
  return [clip(Math.floor(low) - MARGIN), clip(Math.ceil(high) + MARGIN)];
}
