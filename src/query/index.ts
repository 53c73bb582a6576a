/**
 * Search over tiles: filters, their compiler, STAC documents. `TileFinder` queries the owner nodes and merges their answers. Invariant: an
 * answer is as of one commit. May import `async`, `grid`, `raster`, `dht` and `storage`.
 */
export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate.js';
export { toCql2Json } from './cql2/json.js';
export { parseCql2Text } from './cql2/text.js';
export { badDatetime, slotsUnanswered, unsupportedCql2 } from './errors.js';
export { and, defaultToRawSource, type Filter, references } from './filter.js';
export { type FoundTiles, kindWithFilter, type PartialAnswer, partialAnswer, TileFinder } from './finder.js';
export { bboxPolygon, PreparedGeometry } from './geometry.js';
export { memoizeUntilChange } from './memoize.js';
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
} from './parameters.js';
export { createSearch, type Search, searchIndex, searchTiles } from './search.js';
export { collectionSummaries, mergeSummaries, toStacCollection, withSummaries } from './stac/collections.js';
export { collectionExtents, mergeExtents } from './stac/extents.js';
export { attributionFor, extensionUrl, isoTime, stacUrls, toClassification } from './stac/items.js';
export { createItemWriter, type ItemOptions, JsonBuffer, toStacItem } from './stac/writer.js';
export {
  axisOrderHint,
  checkBbox,
  DATETIME_PATTERNS,
  parseBbox,
  parseDatetime,
  parseInstant,
  writeDatetime,
} from './values.js';
