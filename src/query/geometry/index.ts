/**
 * Exact relations of rectangles and GeoJSON geometries, and coverings by cells. Invariant: relations are decided without rounding errors
 * (robust predicates). Imports the folder `values` and the parts `grid` and `storage` (types).
 */
export { type CellCovering, cellKey, coverGeometry, descendantKeys } from './geometry-cell-covering.js';
export { bboxPolygon, readGeometry, type Shape, vertexCount } from './geometry-shape.js';
export { PreparedGeometry } from './prepared-geometry.js';
export { type SpatialOp, spatialConverse, spatialRelations } from './spatial-relations.js';
