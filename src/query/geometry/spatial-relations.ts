/** The spatial functions of CQL2: the dimensionally extended nine-intersection model (OGC 06-103r4, section 6.1.15). */
import type { Bbox } from '../../grid/index.js';
import type { PreparedGeometry } from './prepared-geometry.js';

/** Relations of the cell of an Item to a shape. A cell is an area, so the cases of points and lines are omitted. */
export const spatialRelations = {
  s_intersects: (cell: Bbox, shape: PreparedGeometry) => shape.intersects(cell),
  s_disjoint: (cell: Bbox, shape: PreparedGeometry) => !shape.intersects(cell),
  s_within: (cell: Bbox, shape: PreparedGeometry) => shape.covers(cell),
  s_contains: (cell: Bbox, shape: PreparedGeometry) => shape.isWithin(cell) && shape.intersects(cell, true),
  s_equals: (cell: Bbox, shape: PreparedGeometry) => shape.isWithin(cell) && shape.covers(cell),
  s_touches: (cell: Bbox, shape: PreparedGeometry) => shape.intersects(cell) && !shape.intersects(cell, true),
  s_crosses: (cell: Bbox, shape: PreparedGeometry) =>
    shape.dimension < 2 && !shape.isWithin(cell) && shape.intersects(cell, true),
  s_overlaps: (cell: Bbox, shape: PreparedGeometry) =>
    shape.dimension === 2 && !shape.isWithin(cell) && shape.intersects(cell, true) && !shape.covers(cell),
};

export type SpatialOp = keyof typeof spatialRelations;

/** The equivalent function with swapped arguments, for functions that are not symmetric. */
export const spatialConverse: Partial<Record<SpatialOp, SpatialOp>> = {
  s_within: 's_contains',
  s_contains: 's_within',
};
