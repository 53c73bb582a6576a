/**
 * `POST /ingest`: scenes in allowed folders, or an uploaded file, which is kept in a scratch folder. Invariant: a path outside of the
 * allowed folders reveals nothing about the disk. Imports files of a folder above (types), the folders `routes/processes` and `schemas` and
 * the parts `ingest`, `jobs` (types) and `storage`.
 */
export { ingestRoutes } from './ingest-routes.js';
export { saveUpload } from './ingest-upload.js';
