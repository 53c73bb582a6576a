export type { GroupPixels } from './cut.js';
export { encodeCell, encodeMask } from './encode-cell.js';
export { notRecognised, outsideFence } from './errors.js';
export { Fence } from './fence.js';
export { findInputs } from './formats/index.js';
export type { IngestOptions } from './ingest.js';
export { type IngestInputs, type IngestResults, ingestProcess, PLAN_NOTE } from './process.js';
export type { CellFile, CellGroup, MaskResult } from './tasks.js';
export { IngestWorkers } from './workers.js';
