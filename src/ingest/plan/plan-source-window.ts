/** Determines the source pixels that a cell reads. */
import type { Grid, GridBounds } from '../../grid/index.js';
import type { Window } from '../../raster/index.js';
import {
  gridToPixelTransform,
  type ProjectedRectangle,
  projectRectangle,
  splitIntoQuadrants,
} from '../georeferencing/index.js';
import type { SourceGroup } from '../ingest-scene-description.js';

/** Source rows or columns [from, to) of one group; from = to if the cell lies beside the raster. */
export type RowRange = [from: number, to: number];

/** Pixels beyond the exact ones: one for bilinear neighbours, one for the error of the warp's interpolation. */
const MARGIN_PIXELS = 2;
/** If a part of a cell bends by less than this, in pixels, its extremes are at its points. */
const MAX_CURVATURE_PIXELS = 0.5;
/** Limit of the subdivisions: beyond it only the edge of a map is not flat. */
const MAX_SUBDIVISIONS = 8;

/** Edges and curvature of a projected rectangle along one axis of the raster. */
interface Axis {
  length(header: { width: number; height: number }): number;
  edges(image: ProjectedRectangle): [low: number, high: number, curvature: number];
}

const ROWS: Axis = {
  length: ({ height }) => height,
  edges: ({ top, bottom, curvature }) => [top, bottom, curvature.y],
};
const COLUMNS: Axis = {
  length: ({ width }) => width,
  edges: ({ left, right, curvature }) => [left, right, curvature.x],
};

/**
 * All rows from the northernmost to the southernmost point of the cell, even if these lie within the cell (a pole) or between
 * its corners (a curved parallel).
 */
export function sourceRowsForCell(group: SourceGroup, grid: Grid, geocode: string): RowRange {
  return sourceRanges(group, grid, geocode, [ROWS])[0]!;
}

/** The rows and columns of a cell; without pixels if the cell lies beside the raster. */
export function sourceWindowForCell(group: SourceGroup, grid: Grid, geocode: string): Window {
  const [rows, columns] = sourceRanges(group, grid, geocode, [ROWS, COLUMNS]) as [RowRange, RowRange];
  return { column: columns[0], row: rows[0], width: columns[1] - columns[0], height: rows[1] - rows[0] };
}

/** Parts of the cell that cannot extend a range are not subdivided. */
function sourceRanges(group: SourceGroup, grid: Grid, geocode: string, axes: Axis[]): RowRange[] {
  const { header } = group.bands[0]!;
  const locate = gridToPixelTransform(grid.epsg, header);
  const ranges = axes.map((axis) => ({ axis, length: axis.length(header), low: Infinity, high: -Infinity }));
  const clip = (length: number, at: number) => Math.max(0, Math.min(length, at));

  const widen = (
    image: ProjectedRectangle,
    beyond: (low: number, high: number, curvature: number) => number,
  ) => {
    for (const range of ranges) {
      const [low, high, curvature] = range.axis.edges(image);
      const more = beyond(low, high, curvature);
      range.low = Math.min(range.low, low - more);
      range.high = Math.max(range.high, high + more);
    }
  };
  const isWithin = (image: ProjectedRectangle) =>
    ranges.every(({ axis, length, low: from, high: to }) => {
      const [low, high, curvature] = axis.edges(image);
      return clip(length, low - curvature) >= from && clip(length, high + curvature) <= to;
    });

  const visit = (rect: GridBounds, divisions: number) => {
    const image = projectRectangle(rect, locate);
    const { points, curvature } = image;
    if (points.length === 0 || isWithin(image)) return;
    if (Math.max(curvature.x, curvature.y) <= MAX_CURVATURE_PIXELS) return widen(image, () => 0);
    if (divisions === MAX_SUBDIVISIONS)
      return widen(image, (low, high, curvature) => Math.min(curvature, high - low));
    widen(image, () => 0);
    for (const quarter of splitIntoQuadrants(rect)) visit(quarter, divisions + 1);
  };
  visit(grid.bounds(geocode), 0);
  return ranges.map(({ length, low, high }) =>
    low > high
      ? [0, 0]
      : [clip(length, Math.floor(low) - MARGIN_PIXELS), clip(length, Math.ceil(high) + MARGIN_PIXELS)],
  );
}
