/**
 * Typed client of the API, also exported by the package as `tilewright/client`. Invariant: the same methods work over HTTP and in process
 * (`Transport`). Imports the parts `api` (types), `dht` (types), `jobs` (types), `query` (types) and `training` (types).
 */
export type { Progress, RunHooks } from './client.js';
export { Client } from './client.js';
export type {
  ItemCollection,
  ListedNode,
  ModelDocument,
  NodeUsageDocument,
  PartialDocument,
  SceneSummary,
  SearchRequest,
  SeriesDocument,
  SeriesEntry,
  SeriesRequest,
  SimilarDocument,
  SimilarPlaceDocument,
  SpectraDocument,
  SpectrumEntry,
  SubscriptionDocument,
} from './client-documents.js';
export { FileBody } from './client-file-body.js';
export { hasEnded, type JobDocument, type JobEvent, type LogLine } from './client-job-events.js';
export type { Answer, Transport } from './client-transport.js';
export { decodeText, httpTransport } from './client-transport.js';
export { JobError, unreachable } from './errors.js';
