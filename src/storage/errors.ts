/** Errors of the data folder and of the tile store. */

import { defineError, excerpt } from '../errors.js';

export const storageCorrupt = defineError(
  'TW_STORAGE_CORRUPT',
  500,
  'A stored record or file is damaged: its checksum does not match. Ingest the scene again, or train the model again; `tilewright verify` lists everything that is damaged.',
  (
    what: string,
    where: string,
    remedy = 'Run "tilewright verify", then ingest or train again what it lists.',
  ) => `${what} in ${where} is damaged: its bytes differ from those that were written. ${remedy}`,
);

export const storageDamaged = defineError(
  'TW_STORAGE_DAMAGED',
  500,
  'The catalogue, or the coordination state of a single node, has lost records, so the folder is not opened: the tiles of lost records would be removed as leftovers. Restore the folder from a backup; or remove the file that the message names, `damaged` or `coordination.damaged`, to continue with the remaining records. Ingest the lost scenes again, and check subscriptions.',
  (folder: string, marker: string) =>
    `${folder} has lost records; restore the data folder from a backup, or remove ${marker} to continue with the remaining records`,
);

export const noCatalogue = defineError(
  'TW_STORAGE_NO_CATALOGUE',
  500,
  'The data folder has a `node.json` but no catalogue, for example because only that file was copied. Copy the entire folder; or remove `node.json` to start with an empty folder, which gets a new id.',
  (dir: string) =>
    `${dir} has a node.json but no catalogue; copy the entire folder, or remove node.json to start with an empty one`,
);

export const storageLocked = defineError(
  'TW_STORAGE_LOCKED',
  409,
  'Another process has the data folder open. Use that process through its URL (`--server`), or stop it first.',
  (dir: string, holder: string) =>
    `the data folder ${dir} is open in ${holder}; connect to it with --server, or stop it first`,
);

export const storageFull = defineError(
  'TW_STORAGE_FULL',
  507,
  'The disk of the data folder is full. Free space. If the message says that no writes are accepted until the node is started again, also restart the node: no acknowledged data is lost.',
  (dir: string) =>
    `no space is left on the disk of ${dir}; acknowledged data is safe; free space, then start the server or the command again`,
);

export const diskLow = defineError(
  'TW_STORAGE_DISK_LOW',
  507,
  'The disk of the data folder has less free space than the reserve (`--reserve`), so writes are refused. Free space, or set a smaller reserve.',
  (dir: string, free: number, needed: number) =>
    `the disk of ${dir} has ${megabytes(free)} free, but ${megabytes(needed)} are needed with the reserve; free space, or set a smaller --reserve`,
);

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 100e6 ? 1 : 0)} MB`;

export const storageReadOnly = defineError(
  'TW_STORAGE_READ_ONLY',
  500,
  'This user may not write to the data folder, or it is on a read-only file system.',
  (dir: string, isReadOnlyDisk: boolean) =>
    isReadOnlyDisk
      ? `${dir} is on a read-only file system; make it writable, or choose another folder with --data`
      : `${dir} cannot be written by this user; check its owner and permissions, or choose another folder with --data`,
);

export const storageIo = defineError(
  'TW_STORAGE_IO',
  500,
  'The operating system reported an error for the data folder; the message contains it. If the message says that no writes are accepted until the node is started again, restart the node: no acknowledged data is lost.',
  (dir: string, detail: string) => `an operation on ${dir} failed: ${detail}`,
);

export const storageFormat = defineError(
  'TW_STORAGE_FORMAT',
  500,
  'The data folder was made by a version of tilewright with another format, or its node.json is damaged.',
  (file: string, fault: { format: unknown; readable: number } | { damage: string }) =>
    'format' in fault
      ? `${file} has the format ${excerpt(fault.format)}, but this version reads only format ${fault.readable}; ingest the scenes again into another folder with --data`
      : `${file} is damaged: ${fault.damage}; restore it from a backup, or remove it: the next ingest or server creates it with a new id of the node, and keeps the tiles`,
);

export const storageBadName = defineError(
  'TW_STORAGE_BAD_NAME',
  400,
  'An id, geocode, group or file name contains characters that cannot be part of a path, or is too long.',
  (kind: string, name: string) =>
    `${JSON.stringify(name.slice(0, 300))} is not a valid ${kind}; it may contain letters, digits, ".", "_", "-" and "+", and begins with a letter or digit`,
);

export const sceneBusy = defineError(
  'TW_STORAGE_SCENE_BUSY',
  409,
  'The scene is being ingested or deleted, so no other ingest or delete of it can start. Wait until that has ended.',
  (collection: string, scene: string) =>
    `scene ${scene} of collection ${collection} is being ingested or deleted; wait until that has ended`,
);

export const collectionBusy = defineError(
  'TW_STORAGE_COLLECTION_BUSY',
  409,
  'The collection is being deleted, so none of its scenes can be ingested or deleted. Wait until that has ended.',
  (collection: string) => `collection ${collection} is being deleted; wait until it has ended`,
);

export const sceneWriteMisuse = defineError(
  'TW_STORAGE_WRITE_ORDER',
  500,
  'A scene was written out of order. This is a fault of the program, not of the data; nothing became visible.',
  (scene: string, detail: string) => `the write of scene ${scene} is out of order: ${detail}`,
);

export const derivedWriteMisuse = defineError(
  'TW_STORAGE_DERIVED_ORDER',
  500,
  'A derived tile was written out of order. This is a fault of the program, not of the data; nothing became visible.',
  (tile: string, detail: string) => `the write of tile ${tile} is out of order: ${detail}`,
);

export const collectionNotFound = defineError(
  'TW_STORAGE_NO_COLLECTION',
  404,
  'No collection has this id. `tilewright info` lists all collections.',
  (id: string) => `there is no collection ${JSON.stringify(id)}; "tilewright info" lists all collections`,
);

export const sceneNotFound = defineError(
  'TW_STORAGE_NO_SCENE',
  404,
  'The collection has no scene with this id.',
  (collection: string, id: string) => `collection ${collection} has no scene ${JSON.stringify(id)}`,
);

export const tileNotFound = defineError(
  'TW_STORAGE_NO_TILE',
  404,
  'No tile has this id. `tilewright search` lists tiles.',
  (id: string) => `there is no tile ${JSON.stringify(id)}; "tilewright search" lists tiles`,
);

export const modelNotFound = defineError(
  'TW_STORAGE_NO_MODEL',
  404,
  'No model has this id. `tilewright models` lists all models.',
  (id: string) => `the model ${JSON.stringify(id)} does not exist; "tilewright models" lists all models`,
);

export const modelVersionNotFound = defineError(
  'TW_STORAGE_NO_MODEL_VERSION',
  404,
  'The model has no version with this name, or the version was removed. `tilewright models ID` lists its versions.',
  (id: string, version: string) =>
    `model ${id} has no version ${JSON.stringify(version)}; "tilewright models ${id}" lists its versions`,
);

export const modelDamaged = defineError(
  'TW_STORAGE_MODEL_DAMAGED',
  500,
  'A file of a trained model is missing, or its length or checksum does not match its record. `tilewright verify` lists all damaged files; in a cluster it removes damaged copies, which are then fetched from the tile store again. Otherwise use another version of the model, or train it again.',
  (id: string, version: string, file: string, detail: string) =>
    `${file} of model ${id}, version ${version}, cannot be used: ${detail}; "tilewright verify" lists all damaged files; use another version of the model, or train it again`,
);

export const collectionFixed = defineError(
  'TW_STORAGE_COLLECTION_FIXED',
  409,
  'The grid and the precision of a collection are fixed by its first ingest. Use another collection for another grid or precision.',
  (id: string, fixed: string, wanted: string) =>
    `collection ${id} is fixed to ${fixed}, so ${wanted} cannot be added; name another collection with --collection (with --from-stac: --into)`,
);

export const storeBadUrl = defineError(
  'TW_STORE_BAD_URL',
  400,
  'The URL of a tile store is not valid. Use `file:///mount/folder` or `s3://bucket/prefix`; it must not contain credentials.',
  (url: string, detail: string) =>
    `${url} is not the URL of a tile store: ${detail}; use file:///mount/folder or s3://bucket/prefix`,
);

export const storeInDataFolder = defineError(
  'TW_STORE_IN_DATA_FOLDER',
  400,
  'The tile store and the data folder are the same folder, or one is within the other. The data folder of a node is a cache: it removes files to free space, and would remove files of the store. Use two folders side by side.',
  (url: string, dir: string) =>
    `the tile store ${url} and the data folder ${dir} are the same folder, or one is within the other, so the cache would remove the store's files; use two folders side by side`,
);

export const dataFolderIsStore = defineError(
  'TW_STORAGE_IS_STORE',
  409,
  'The data folder is the tile store of a cluster: it has a `cluster.json`. Pass it with `--store`, and another folder with `--data`.',
  (dir: string) =>
    `the data folder ${dir} is the tile store of a cluster, which has a cluster.json; pass it with --store, and another folder with --data`,
);

export const storeUnavailable = defineError(
  'TW_STORE_UNAVAILABLE',
  503,
  'The tile store did not answer, even after several attempts. Check that its server or mount is up and can be reached from this machine; then try again.',
  (url: string, endpoint: string, detail: string) =>
    `the tile store ${url} cannot be reached at ${endpoint} (${detail}); check that it is up and can be reached from this machine, then try again`,
);

export const storeDenied = defineError(
  'TW_STORE_DENIED',
  500,
  'The tile store refuses access: there are no credentials, they are wrong, or they do not allow the operation. The message says which were used.',
  (url: string, detail: string) => `the tile store ${url} refuses access: ${detail}`,
);

export const storeNotFound = defineError(
  'TW_STORE_NOT_FOUND',
  404,
  'The tile store has no object with this name, or its bucket or folder is missing.',
  (url: string, what: string) => `the tile store ${url} has no ${what}`,
);

export const storeLost = defineError(
  'TW_STORE_LOST',
  410,
  'The record of a tile or model names a file that the tile store does not have: it was removed, or the tile was just replaced. Look up the tile or model again; if the error persists, `tilewright verify` lists missing files: restore them from a copy, or make them again from their source.',
  (name: string, url: string, owner: string) =>
    `${name} of ${owner} is not in the tile store ${url}; look it up again, and if the error persists restore the object or make it again from its source`,
);

export const storeCorrupt = defineError(
  'TW_STORE_CORRUPT',
  500,
  'An object is damaged: its checksum does not match. Make the object again: ingest its scene, or train its model.',
  (name: string, url: string, detail: string) =>
    `${name} of the tile store ${url} is damaged: ${detail}; make it again from its source`,
);

export const storeExists = defineError(
  'TW_STORE_EXISTS',
  409,
  'The tile store has an object with this name and other content. Objects are never overwritten, so two writers have used one name; check that no two clusters share the store.',
  (name: string, url: string) =>
    `${name} is in the tile store ${url} with other content, and objects are never overwritten; check that no other cluster writes to the store`,
);

export const storeFull = defineError(
  'TW_STORE_FULL',
  507,
  'The tile store has no space left, or its quota is exhausted. Free space or raise the quota; no partial object remains.',
  (url: string) => `the tile store ${url} has no space left; free space or raise its quota, then try again`,
);

export const storeIo = defineError(
  'TW_STORE_IO',
  500,
  'The tile store returned an error that is not transient; the message contains it.',
  (url: string, what: string, detail: string) => `${what} failed in the tile store ${url}: ${detail}`,
);

export const commitTooOld = defineError(
  'TW_STORAGE_TOO_OLD',
  409,
  'The requested commit is too old for this node, or is from before the node had all of these tiles. Query another node, or a later commit.',
  (seq: number, oldest: number) =>
    `this node can answer as of commit ${oldest} and later ones, but not as of commit ${seq}; query another node, or a later commit`,
);
