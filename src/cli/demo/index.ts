/**
 * `tilewright demo`: ingest, search and training on sample scenes or on the user's scene, and a report. The only folder that imports
 * `data-samples`. Imports `node.ts`, `client` and `report`.
 */
export { runDemo } from './run-demo.js';
