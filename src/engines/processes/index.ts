/**
 * Child processes in which an engine runs, and the request/response protocol with them. Invariant: every request settles exactly once, even
 * if the process is killed. Imports files of a folder above (types) and the part `async`.
 */
export { allowedCpus } from './engine-cpu-affinity.js';
export { EnginePool, resultOrFailure } from './engine-pool.js';
export { EngineProcess, ProcessEnded } from './engine-process.js';
export { type Handler, serveRequests } from './serve-engine-requests.js';
