/**
 * STAC documents of collections and tiles, and the summaries and extents of a collection. Invariant: a document depends only on records,
 * the index and the base URL. May import `grid`, `raster`, `dht` (types) and `storage`.
 */

export { toStacCollection } from './collection.js';
export { collectionExtents, type Extent, mergeExtents } from './collection-extents.js';
export * from './collection-summaries.js';
export { bboxPolygon, type StacPolygon, toClassification } from './item.js';
export { createItemWriter, type ItemOptions, toStacItem } from './item-writer.js';
export { JsonBuffer } from './json-buffer.js';
export { attributionFor, extensionUrl, isoTime, type StacLink, stacUrls } from './links.js';
