export { collectionExtent } from './collection-extent.js';
export type { TileFilter } from './filter.js';
export { parseDatetime } from './parse-datetime.js';
export {
  checkBbox,
  type FilterParams,
  filterBody,
  filterQuery,
  parseBbox,
  parseFilter,
} from './parse-filter.js';
export { searchTiles } from './search.js';
export { toStacCollection, toStacItem } from './stac-item.js';
