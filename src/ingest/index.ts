export type { IngestContext, IngestOptions, SceneResult } from './ingest.js';
export { ingestScene } from './ingest.js';
export type { IngestInputs, IngestResults } from './process.js';
export { ingestProcess } from './process.js';
export { startIngestWorkers } from './workers.js';
