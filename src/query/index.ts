/**
 * Search over tiles: filters, their compiler, STAC documents. `TileFinder` queries the owner nodes and merges their answers. Invariant: an
 * answer is as of one commit. May import `grid`, `raster`, `dht` and `storage`.
 */
export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate/index.js';
export { parseCql2Text, toCql2Json } from './cql2/index.js';
export { badDatetime, slotsUnanswered, unsupportedCql2 } from './errors.js';
export { and, defaultToRawSource, type Filter, references } from './filter/index.js';
export { bboxPolygon, PreparedGeometry } from './geometry/index.js';
export { memoizeUntilChange } from './memoize-query.js';
export {
  checkFilter,
  datetimeSchema,
  type FilterParams,
  filterBody,
  filterQuery,
  filterSchema,
  parseFilter,
  parseSortby,
  parseSource,
  queryablesSchema,
  requireCollections,
  sortbyBody,
  sortbyQuery,
} from './params/index.js';
export {
  createSearch,
  type FoundTiles,
  type PartialAnswer,
  partialAnswer,
  type Search,
  searchIndex,
  searchTiles,
  TileFinder,
  withFilterCheck,
} from './search/index.js';
export {
  attributionFor,
  collectionExtents,
  collectionSummaries,
  createItemWriter,
  extensionUrl,
  type ItemOptions,
  isoTime,
  JsonBuffer,
  mergeExtents,
  mergeSummaries,
  stacUrls,
  toClassification,
  toStacCollection,
  toStacItem,
  withSummaries,
} from './stac-documents/index.js';
export {
  axisOrderHint,
  checkBbox,
  DATETIME_PATTERNS,
  parseBbox,
  parseDatetime,
  parseInstant,
  writeDatetime,
} from './values/index.js';
