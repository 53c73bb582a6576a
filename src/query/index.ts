export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate/aggregate.js';
export { toCql2Json } from './cql2/write-json.js';
export { badDatetime, unanswered } from './errors.js';
export { all, type Filter, mentions, rawUnlessAsked } from './filter/filter-tree.js';
export { keptUntilChange } from './memoize-answer.js';
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
export { parseSort } from './params/sortby.js';
export { withFilter } from './search/remote-queries.js';
export { findPlaces, type Search, searchOf, searchTiles } from './search/search-index.js';
export { type FoundTiles, type Partly, partly, TileFinder } from './search/tile-finder.js';
export { toStacCollection } from './stac/collection.js';
export { collectionExtents, mergeExtents } from './stac/collection-extents.js';
export { collectionContents, mergeContents, withContent } from './stac/collection-summaries.js';
export { type ItemOptions, rectangle, type StacPolygon, stacClass, toStacItem } from './stac/item.js';
export { itemWriter } from './stac/item-writer.js';
export { JsonBytes } from './stac/json-buffer.js';
export { attributionOf, extension, isoTime, type StacLink, urls } from './stac/links.js';
export { longitudeFirst } from './values/axis-order-hint.js';
export { parseBbox } from './values/parse-bbox.js';
export { parseDatetime, parseInstant, writeDatetime } from './values/parse-datetime.js';
