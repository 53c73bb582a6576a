/**
 * Converts parameters and bodies of requests to a filter, an order and a page; queryables. May import `cql2`, `filter`,
 * `geometry`, `values` and `storage`.
 */
export { decodePagingToken, encodePagingToken, searchDigest } from './paging-token.js';
export * from './parse-filter.js';
export { queryablesSchema } from './queryables.js';
export { requireCollections } from './require-collections.js';
export { parseSortby, sortbyBody, sortbyQuery } from './sortby.js';
