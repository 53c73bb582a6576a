/**
 * Finds STAC Items: by the search of an API, in a static catalog, or in a document. Invariant: an Item is returned once, and documents are
 * read within limits of size and number. Imports the folder `http`, files of a folder above and the parts `grid` (types) and `query`.
 */

export { findItems } from './find-stac-items.js';
export { itemMatcher } from './match-stac-item.js';
export { itemOf, linksOf, RemoteItem, readDocument } from './stac-documents.js';
export type { StacQuery } from './stac-query.js';
