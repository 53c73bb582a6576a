/** Determines the source rows that a cell reads. */
import type { Grid, GridBounds } from '../../grid/index.js';
import { gridToPixelTransform, projectRectangle, splitIntoQuadrants } from '../georeferencing/index.js';
import type { SourceGroup } from '../ingest-scene-description.js';

/** Source rows [from, to) of one group; from = to if the cell lies beside the raster. */
export type RowRange = [from: number, to: number];

/** Rows beyond the exact ones: one for bilinear neighbours, one for the error of the warp's interpolation. */
const MARGIN_ROWS = 2;
/** If a part of a cell bends by less than this, in pixels, its extremes are at its points. */
const MAX_CURVATURE_PIXELS = 0.5;
/** Limit of the subdivisions: beyond it only the edge of a map is not flat. */
const MAX_SUBDIVISIONS = 8;

/**
 * All rows from the northernmost to the southernmost point of the cell, even if these lie within the cell (a pole) or between
 * its corners (a curved parallel). Parts that cannot extend the range are not subdivided.
 */
export function sourceRowsForCell(group: SourceGroup, grid: Grid, geocode: string): RowRange {
  const { header } = group.bands[0];
  const locate = gridToPixelTransform(grid.epsg, header);
  const clip = (row: number) => Math.max(0, Math.min(header.height, row));
  let low = Infinity;
  let high = -Infinity;
  const widen = (from: number, to: number) => {
    low = Math.min(low, from);
    high = Math.max(high, to);
  };

  const visit = (rect: GridBounds, divisions: number) => {
    const { points, top, bottom, curvature } = projectRectangle(rect, locate);
    if (points.length === 0) return;
    if (clip(top - curvature.y) >= low && clip(bottom + curvature.y) <= high) return;
    if (Math.max(curvature.x, curvature.y) <= MAX_CURVATURE_PIXELS) return widen(top, bottom);
    if (divisions === MAX_SUBDIVISIONS) {
      const beyond = Math.min(curvature.y, bottom - top);
      return widen(top - beyond, bottom + beyond);
    }
    widen(top, bottom);
    for (const quarter of splitIntoQuadrants(rect)) visit(quarter, divisions + 1);
  };
  visit(grid.bounds(geocode), 0);
  if (low > high) return [0, 0];
  return [clip(Math.floor(low) - MARGIN_ROWS), clip(Math.ceil(high) + MARGIN_ROWS)];
}
