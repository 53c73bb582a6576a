/**
 * Searches in remote catalogs that are repeated, so that a region stays up to date. Invariants: a round is an ordinary job of `ingest`;
 * each round has one job, even if a node or a process dies; a subscription ends only when it is removed. Imports the parts `async`,
 * `coordination`, `ingest`, `jobs`, `query`, `remote` (types) and `storage` (types).
 */
export { EVERY_PATTERN, formatEvery } from './rounds.js';
export type { Round, SubscriptionRecord, SubscriptionState } from './store.js';
export { type SubscriptionRequest, Subscriptions } from './subscriptions.js';
