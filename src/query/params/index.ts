/**
 * Converts parameters and bodies of requests to a filter, an order and a page; queryables. May import `cql2`, `filter`,
 * `geometry`, `values` and `storage`.
 */
export { decodePagingToken, encodePagingToken, searchDigest } from './paging-token-parameter.js';
export * from './parse-filter-parameters.js';
export { queryablesSchema } from './queryable-parameters.js';
export { requireCollections } from './require-collections-parameter.js';
export { parseSortby, sortbyBody, sortbyQuery } from './sortby-parameter.js';
