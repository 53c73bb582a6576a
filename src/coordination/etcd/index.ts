/**
 * The coordination store over the JSON gateway of etcd. Invariant: an answer of an unexpected shape counts as no answer, so the outcome of
 * that attempt is unknown. Imports files of a folder above (types) and the part `async`.
 */
export { EtcdStore } from './etcd-kv-store.js';
