/**
 * STAC documents of collections and tiles, and the summaries and extents of a collection. Invariant: a document depends only on records,
 * the index and the base URL. Imports files of a folder above and the parts `dht` (types), `grid`, `raster` and `storage`.
 */

export { toStacCollection } from './stac-collection.js';
export { collectionExtents, type Extent, mergeExtents } from './stac-collection-extents.js';
export * from './stac-collection-summaries.js';
export { bboxPolygon, type StacPolygon, toClassification } from './stac-item.js';
export { createItemWriter, type ItemOptions, toStacItem } from './stac-item-writer.js';
export { JsonBuffer } from './stac-json-buffer.js';
export { attributionFor, extensionUrl, isoTime, type StacLink, stacUrls } from './stac-links.js';
