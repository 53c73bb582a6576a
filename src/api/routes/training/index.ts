/**
 * Training of a cell outside of the node: the files to read, and the upload of the model. Imports files of a folder above (types), the
 * folders `routes/ingest`, `routes/processes` and `schemas` and the part `training`.
 */
export { trainingRoutes } from './training-routes.js';
