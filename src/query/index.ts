export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate/aggregate.js';
export { collectionContents, mergeContents, withContent } from './collection-content.js';
export { collectionExtents, mergeExtents } from './collection-extents.js';
export { toCql2Json } from './cql2/write-json.js';
export { badDatetime, unanswered } from './errors.js';
export { all, type Filter, mentions, rawUnlessAsked } from './filter/filter.js';
export { type FoundTiles, type Partly, partly, TileFinder } from './finder.js';
export { JsonBytes } from './json-bytes.js';
export { keptUntilChange } from './kept-until-change.js';
export { longitudeFirst } from './longitude-first.js';
export { requireCollections } from './named-collections.js';
export { parseBbox } from './parse-bbox.js';
export { parseDatetime, parseInstant, writeDatetime } from './parse-datetime.js';
export {
  checkFilter,
  type FilterParams,
  filterBody,
  filterQuery,
  parseFilter,
  parseSource,
} from './parse-filter.js';
export { queryablesSchema } from './queryables.js';
export { withFilter } from './questions.js';
export { findPlaces, type Search, searchOf, searchTiles } from './search.js';
export { parseSort } from './sort.js';
export { toStacCollection } from './stac-collection.js';
export { attributionOf, extension, isoTime, type StacLink, urls } from './stac-common.js';
export { type ItemOptions, rectangle, type StacPolygon, stacClass, toStacItem } from './stac-item.js';
export { itemWriter } from './stac-item-text.js';
