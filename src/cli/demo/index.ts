/**
 * `tilewright demo`: ingest, search and training on sample scenes or on the user's scene, and a report. The only folder that imports
 * `data-samples`. Imports files of a folder above, the folders `options` (types) and `output` and the parts `client`, `demo-report`,
 * `grid`, `html`, `ingest` (types), `jobs` (types), `node.ts`, `query`, `raster`, `storage` (types) and `training` (types).
 */
export { runDemo } from './run-demo.js';
