/**
 * Immutable objects with unique names in a shared folder or an S3 bucket. Invariant: an object is complete or absent, durable when `put`
 * resolves, and never overwritten. `open.ts` loads the S3 client on demand, so nothing here may export it. Imports the folder `files` and
 * the parts `async` and `metrics` (types).
 */
export { measuredStore } from './measured-object-store.js';
export type * from './object-store.js';
export { openObjectStore, requireDisjoint } from './open-object-store.js';
