/**
 * Reads the scenes of remote archives: chooses the assets of a STAC Item, and fetches the headers of their files and the blocks of the
 * wanted cells into sparse copies. Invariant: a copy is read like the file itself, except that blocks which were not fetched are nodata.
 * Imports files of a folder above, the folders `cut` (types), `georeferencing` (types) and `plan` and the parts `async`, `grid` (types),
 * `raster`, `remote` and `storage` (types).
 */

export { chooseAssets } from './choose-item-assets.js';
export { CollectionLicences } from './collection-licence.js';
export { bytesOfBlocks, fetchRanges, planFetch, withFetchedBlocks } from './fetch-blocks.js';
export { type FetchedFiles, fetchFile, fetchItem, type RemoteFiles } from './fetch-item.js';
export { fetchProgress } from './fetch-progress.js';
export { itemDigest } from './item-digest.js';
export { itemPositions } from './item-positions.js';
export { type CopyContext, isTiffStart } from './open-remote-copy.js';
export type { CellOwners, MadePart, RemoteSource, WantedPart } from './remote-source.js';
export { selectItems } from './select-items.js';
export { type StoredItem, StoredItems } from './stored-items.js';
export { WholeFiles } from './whole-files.js';
