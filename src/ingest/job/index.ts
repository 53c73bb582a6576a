/**
 * The ingest process: describes, plans and cuts the scenes of a job, and decides which scene waits for which. Invariant: of the scenes of a
 * new collection one at a time is ingested, and every input ends as a result or as a failure. Imports files of a folder above, the folders
 * `cloud`, `cut`, `inputs`, `plan`, `remote` and `scene-parts` and the parts `async`, `coordination`, `grid` (types), `jobs`, `metrics`
 * (types), `raster` and `storage` (types).
 */
export { PLAN_PREFIX } from './ingest-job.js';
export type { IngestInputs, IngestResults } from './ingest-job-inputs.js';
export { type IngestProcess, ingestProcess } from './ingest-process.js';
export { checkStacSource, type StacSource } from './remote-scenes.js';
export { ScenePartService } from './scene-part-service.js';
