/**
 * STAC documents of collections and tiles, and the summaries and extents of a collection. Invariant: a document depends only on records,
 * the index and the base URL. Imports files of a folder above, the folder `geometry` and the parts `dht` (types), `grid`, `raster` and
 * `storage`.
 */

export { toStacCollection } from './stac-collection-document.js';
export { JsonBuffer } from './stac-document-buffer.js';
export { collectionExtents, type Extent, mergeExtents } from './stac-document-extents.js';
export { attributionFor, extensionUrl, isoTime, type StacLink, stacUrls } from './stac-document-links.js';
export * from './stac-document-summaries.js';
export { type StacPolygon, toClassification } from './stac-item-document.js';
export { createItemWriter, type ItemOptions, toStacItem } from './stac-item-document-writer.js';
