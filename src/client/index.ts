/**
 * Typed client of the API, also exported by the package as `tilewright/client`. Invariant: the same methods work over HTTP and in process
 * (`Transport`). Imports the parts `api` (types), `dht` (types), `jobs` (types), `query` (types) and `training` (types).
 */

export type { SubscriptionDocument } from '../api/index.js';
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
} from './documents.js';
export { JobError, unreachable } from './errors.js';
export { hasEnded, type JobDocument, type JobEvent, type LogLine } from './jobs.js';
export type { Answer, Transport } from './transport.js';
export { decodeText, FileBody, httpTransport } from './transport.js';
