/**
 * Training of a cell outside of the node: the files to read, and the upload of the model. Imports `training`, `routes/ingest` and
 * `routes/processes`.
 */
export { trainingRoutes } from './training-routes.js';
