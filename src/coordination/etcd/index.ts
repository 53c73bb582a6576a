/**
 * The coordination store over the JSON gateway of etcd. Invariant: an answer of an unexpected shape counts as no answer, so the outcome
 * of that attempt is unknown. Imports only its parent folder, `async` and `errors.ts`.
 */
export { EtcdStore } from './etcd-kv-store.js';
