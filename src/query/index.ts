export {
  type AggregationParams,
  aggregate,
  aggregationBody,
  aggregationQuery,
  aggregations,
} from './aggregate/aggregate.js';
export { answerShare, clusterFinder, SHARE_PATH, type ShareRequest } from './cluster-finder.js';
export { collectionContents, withContent } from './collection-content.js';
export { collectionExtents } from './collection-extents.js';
export { toCql2Json } from './cql2/write-json.js';
export { all, type Filter, rawUnlessAsked } from './filter/filter.js';
export { type FoundTiles, localFinder, type TileFinder } from './finder.js';
export { JsonBytes } from './json-bytes.js';
export { longitudeFirst } from './longitude-first.js';
export { parseBbox } from './parse-bbox.js';
export { parseDatetime, writeDatetime } from './parse-datetime.js';
export { type FilterParams, filterBody, filterQuery, parseFilter, parseSource } from './parse-filter.js';
export { queryablesSchema } from './queryables.js';
export { type Search, searchOf, searchTiles } from './search.js';
export { parseSort } from './sort.js';
export { toStacCollection } from './stac-collection.js';
export { attributionOf } from './stac-common.js';
export { toStacItem } from './stac-item.js';
export { itemWriter } from './stac-item-text.js';
