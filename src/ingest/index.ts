export type { IngestOptions } from './ingest.js';
export { type IngestInputs, type IngestResults, ingestProcess } from './process.js';
export { startIngestWorkers } from './workers.js';
