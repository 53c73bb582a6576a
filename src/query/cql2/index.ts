/**
 * Converts CQL2 text and JSON to and from the filter tree. Text is parsed to JSON first, so both have one reader. May import `filter`,
 * `geometry` and `values`.
 */
export { parseCql2Text } from './parse-cql2-text.js';
export { checkLanguage, FILTER_LANGUAGES, readCql2, readCql2Json } from './read-cql2-json.js';
export { isObject } from './read-cql2-literals.js';
export { toCql2Json } from './write-cql2-json.js';
