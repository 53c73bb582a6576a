export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate/aggregate.js';
export { toCql2Json } from './cql2/write-json.js';
export { badDatetime, slotsUnanswered } from './errors.js';
export { and, defaultToRawSource, type Filter, references } from './filter/filter-tree.js';
export { memoizeUntilChange } from './memoize.js';
export {
  checkFilter,
  type FilterParams,
  filterBody,
  filterQuery,
  parseFilter,
  parseSource,
} from './params/parse-filter.js';
export { queryablesSchema } from './params/queryables.js';
export { requireCollections } from './params/require-collections.js';
export { parseSortby } from './params/sortby.js';
export { withFilterCheck } from './search/remote-queries.js';
export { createSearch, type Search, searchIndex, searchTiles } from './search/search-index.js';
export { type FoundTiles, type PartialAnswer, partialAnswer, TileFinder } from './search/tile-finder.js';
export { toStacCollection } from './stac/collection.js';
export { collectionExtents, mergeExtents } from './stac/collection-extents.js';
export { collectionSummaries, mergeSummaries, withSummaries } from './stac/collection-summaries.js';
export { bboxPolygon, type StacPolygon, toClassification } from './stac/item.js';
export { createItemWriter, type ItemOptions, toStacItem } from './stac/item-writer.js';
export { JsonBuffer } from './stac/json-buffer.js';
export { attributionFor, extensionUrl, isoTime, type StacLink, stacUrls } from './stac/links.js';
export { axisOrderHint } from './values/axis-order-hint.js';
export { parseBbox } from './values/parse-bbox.js';
export { parseDatetime, parseInstant, writeDatetime } from './values/parse-datetime.js';
