/**
 * Exact relations of rectangles and GeoJSON geometries, and coverings by cells. Invariant: relations are decided without rounding errors
 * (robust predicates). May import `grid`, `values` and `storage` (types).
 */
export { type CellCovering, cellKey, coverGeometry, descendantKeys } from './geometry-cell-covering.js';
export { readGeometry, type Shape, vertexCount } from './geometry-shape.js';
export { type SpatialOp, spatialConverse, spatialRelations } from './geometry-spatial-relations.js';
export { PreparedGeometry } from './prepared-geometry.js';
