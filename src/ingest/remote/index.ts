/**
 * Reads the scenes of remote archives: chooses the assets of a STAC Item, and fetches the headers of their files and the blocks of the
 * wanted cells into sparse copies. Invariant: a copy is read like the file itself, except that blocks which were not fetched are nodata.
 * Imports files of a folder above, the folder `plan` and the parts `async`, `raster` and `remote`.
 */

export { CollectionLicences } from './collection-licence.js';
export { fetchRanges, planFetch, withFetchedBlocks } from './fetch-blocks.js';
export { type FetchedFiles, fetchFile, fetchItem, type RemoteFiles } from './fetch-item.js';
export { itemDigest } from './item-digest.js';
export type { CopyContext } from './open-remote-copy.js';
export type { RemoteSource } from './remote-source.js';
export { selectItems } from './select-items.js';
export { type StoredItem, StoredItems } from './stored-items.js';
export { WholeFiles } from './whole-files.js';
