export type {
  ItemCollection,
  Progress,
  RunHooks,
  SceneSummary,
  SearchRequest,
  SeriesDocument,
  SeriesEntry,
  SeriesRequest,
} from './client.js';
export { Client } from './client.js';
export { FileBody } from './send-file.js';
export type { Answer, Transport } from './transport.js';
export { httpTransport } from './transport.js';
