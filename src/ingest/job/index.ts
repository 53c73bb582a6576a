/**
 * The ingest process: describes, plans and cuts the scenes of a job, and decides which scene waits for which. Invariant: of the
 * scenes of a new collection one at a time is ingested, and every input ends as a result or as a failure. May import all other
 * folders of ingest.
 */
export { type IngestInputs, type IngestResults, PLAN_PREFIX } from './ingest-job.js';
export { ingestProcess } from './ingest-process.js';
