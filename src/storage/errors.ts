import { defineError } from '../errors.js';

export const storageCorrupt = defineError(
  'TW_STORAGE_CORRUPT',
  500,
  'A stored record or file is not what was written: its checksum does not fit. Ingest the scene again, or train the model again; `tilewright verify` lists everything that is damaged.',
  (what: string, where: string) =>
    `${what} in ${where} is damaged: its bytes are not those that were written. Run "tilewright verify", then ingest or train again what it names.`,
);

export const storageDamaged = defineError(
  'TW_STORAGE_DAMAGED',
  500,
  'The catalogue has lost records, so the folder is not used: its tiles would be taken for leftovers. Restore it from a backup; or remove the file `damaged` to go on with the records that are left, and ingest the lost scenes again.',
  (dir: string, marker: string) =>
    `the catalogue of ${dir} has lost records; restore it from a backup, or remove ${marker} to go on with what is left`,
);

export const noCatalogue = defineError(
  'TW_STORAGE_NO_CATALOGUE',
  500,
  'The data folder has a `node.json` but no catalogue, as where that file alone was copied. Put the whole folder in place; or remove `node.json` to begin with an empty folder, which gets an id of its own.',
  (dir: string) =>
    `${dir} has a node.json but no catalogue; put the whole folder in place, or remove node.json to begin anew`,
);

export const storageLocked = defineError(
  'TW_STORAGE_LOCKED',
  409,
  'Another process holds the data folder. Use that process through its URL (`--server`), or stop it first.',
  (dir: string, holder: string) =>
    `the data folder ${dir} is held by ${holder}; talk to it with --server, or stop it first`,
);

export const storageFull = defineError(
  'TW_STORAGE_FULL',
  507,
  'The disk of the data folder is full. Free space. If the message says that no writes are accepted until the node is started again, also start it again: nothing acknowledged is lost.',
  (dir: string) =>
    `no space is left on the disk of ${dir}; what was acknowledged is safe; free space, then start the server or the command again`,
);

export const diskLow = defineError(
  'TW_STORAGE_DISK_LOW',
  507,
  'The disk of the data folder has less free space than its reserve (`--reserve`), so nothing more is written. Free space, or set a smaller reserve.',
  (dir: string, free: number, needed: number) =>
    `the disk of ${dir} has ${megabytes(free)} free, but ${megabytes(needed)} are needed with the reserve; free space, or set a smaller --reserve`,
);

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 100e6 ? 1 : 0)} MB`;

export const storageReadOnly = defineError(
  'TW_STORAGE_READ_ONLY',
  500,
  'The data folder may not be written by this user, or lies on a read-only file system.',
  (dir: string) =>
    `${dir} cannot be written by this user; check its owner and permissions, or choose another folder with --data`,
);

export const storageIo = defineError(
  'TW_STORAGE_IO',
  500,
  'The operating system reported an error of the data folder; the message names it. If the message says that no writes are accepted until the node is started again, start it again: nothing acknowledged is lost.',
  (dir: string, detail: string) => `an operation on ${dir} failed: ${detail}`,
);

export const storageFormat = defineError(
  'TW_STORAGE_FORMAT',
  500,
  'The data folder was made by a version of tilewright with another layout, or its node.json is damaged.',
  (file: string, found: string) =>
    `${file} has ${found}, but this version reads formats 1 and 2 only; use the version that made it, or another folder with --data`,
);

export const storageBadName = defineError(
  'TW_STORAGE_BAD_NAME',
  400,
  'An id, geocode, group or file name holds characters that cannot be part of a path, or is too long.',
  (kind: string, name: string) =>
    `${JSON.stringify(name.slice(0, 300))} is no valid ${kind}; letters, digits, ".", "_", "-" and "+" are allowed, beginning with a letter or digit`,
);

export const sceneBusy = defineError(
  'TW_STORAGE_SCENE_BUSY',
  409,
  'The scene is being ingested or deleted, so that it can be neither ingested by another nor deleted. Wait until that has ended.',
  (collection: string, scene: string) =>
    `scene ${scene} of collection ${collection} is being ingested or deleted; wait until that has ended`,
);

export const collectionBusy = defineError(
  'TW_STORAGE_COLLECTION_BUSY',
  409,
  'The collection is being deleted, so that none of its scenes can be ingested or deleted meanwhile. Wait until it has ended.',
  (collection: string) => `collection ${collection} is being deleted; wait until it has ended`,
);

export const sceneWriteMisuse = defineError(
  'TW_STORAGE_WRITE_ORDER',
  500,
  'A scene was written out of order. This is a fault in the program, not in the data; nothing became visible.',
  (scene: string, detail: string) => `the write of scene ${scene} is out of order: ${detail}`,
);

export const derivedWriteMisuse = defineError(
  'TW_STORAGE_DERIVED_ORDER',
  500,
  'A tile made from others was written out of order. This is a fault in the program, not in the data; nothing became visible.',
  (tile: string, detail: string) => `the write of tile ${tile} is out of order: ${detail}`,
);

export const collectionNotFound = defineError(
  'TW_STORAGE_NO_COLLECTION',
  404,
  'There is no collection of this name. `tilewright info` lists those that exist.',
  (id: string) => `there is no collection ${JSON.stringify(id)}; "tilewright info" lists those that exist`,
);

export const sceneNotFound = defineError(
  'TW_STORAGE_NO_SCENE',
  404,
  'There is no scene of this id in the collection.',
  (collection: string, id: string) => `collection ${collection} has no scene ${JSON.stringify(id)}`,
);

export const tileNotFound = defineError(
  'TW_STORAGE_NO_TILE',
  404,
  'There is no tile of this id. `tilewright search` lists those that exist.',
  (id: string) => `there is no tile ${JSON.stringify(id)}; "tilewright search" lists those that exist`,
);

export const modelNotFound = defineError(
  'TW_STORAGE_NO_MODEL',
  404,
  'There is no model of this id. `tilewright models` lists those that exist.',
  (id: string) => `there is no model ${JSON.stringify(id)}; "tilewright models" lists those that exist`,
);

export const modelVersionNotFound = defineError(
  'TW_STORAGE_NO_MODEL_VERSION',
  404,
  'The model has no version of this name: it never had, or it was removed. `tilewright models ID` lists those that it has.',
  (id: string, version: string) =>
    `model ${id} has no version ${JSON.stringify(version)}; "tilewright models ${id}" lists those that it has`,
);

export const modelDamaged = defineError(
  'TW_STORAGE_MODEL_DAMAGED',
  500,
  'A file of a trained model is not as it was written: it is missing, or its length or checksum is not that of the record. `tilewright verify` lists all that is damaged; in a cluster it removes damaged copies, which are then fetched from the tile store again. Else take another version of the model, or train it again.',
  (id: string, version: string, file: string, detail: string) =>
    `${file} of model ${id}, version ${version}, cannot be used: ${detail}; "tilewright verify" lists all that is damaged: take another version of the model, or train it again`,
);

export const collectionFixed = defineError(
  'TW_STORAGE_COLLECTION_FIXED',
  409,
  'The grid and the precision of a collection are fixed by its first ingest. Use another collection for another grid or precision.',
  (id: string, fixed: string, wanted: string) =>
    `collection ${id} is fixed to ${fixed}, so ${wanted} cannot be added; name another collection with --collection`,
);

export const storeBadUrl = defineError(
  'TW_STORE_BAD_URL',
  400,
  'The place of a tile store is none that can be used. Give `file:///mount/folder` or `s3://bucket/prefix`; credentials do not belong in it.',
  (url: string, detail: string) =>
    `${url} is no place of a tile store: ${detail}; give file:///mount/folder or s3://bucket/prefix`,
);

export const storeInDataFolder = defineError(
  'TW_STORE_IN_DATA_FOLDER',
  400,
  'The tile store and the data folder are the same folder, or one is within the other. The data folder of a node is a cache: it removes files to make room, and would remove those of the store. Put the two side by side.',
  (url: string, dir: string) =>
    `the tile store ${url} and the data folder ${dir} are the same folder, or one is within the other, so that the cache would remove the store's files; give them folders side by side`,
);

export const dataFolderIsStore = defineError(
  'TW_STORAGE_IS_STORE',
  409,
  'The data folder is the tile store of a cluster: it has a `cluster.json`. Give it by `--store`, and a folder of its own by `--data`.',
  (dir: string) =>
    `the data folder ${dir} is the tile store of a cluster, which has a cluster.json; give it by --store, and another folder by --data`,
);

export const storeUnavailable = defineError(
  'TW_STORE_UNAVAILABLE',
  503,
  'The tile store did not answer, also after several attempts. Check that its server or mount is up and can be reached from this machine; then try again.',
  (url: string, endpoint: string, detail: string) =>
    `the tile store ${url} cannot be reached at ${endpoint} (${detail}); check that it is up and can be reached from this machine, then try again`,
);

export const storeDenied = defineError(
  'TW_STORE_DENIED',
  500,
  'The tile store does not let this process in: there are no credentials, they are wrong, or they do not allow the operation. The message says which were used.',
  (url: string, detail: string) => `the tile store ${url} refuses access: ${detail}`,
);

export const storeNotFound = defineError(
  'TW_STORE_NOT_FOUND',
  404,
  'The tile store has no object of this name, or its bucket or folder is missing.',
  (url: string, what: string) => `the tile store ${url} has no ${what}`,
);

export const storeLost = defineError(
  'TW_STORE_LOST',
  410,
  'The record of a tile or model names a file that the tile store does not have: somebody has removed it, or the tile was replaced just now. Look it up again; where it stays so, `tilewright verify` lists what is missing: restore it from a copy, or make it again from its source.',
  (name: string, url: string, owner: string) =>
    `${name} of ${owner} is not in the tile store ${url}; look it up again, and where it stays so restore the object or make it again from its source`,
);

export const storeCorrupt = defineError(
  'TW_STORE_CORRUPT',
  500,
  'The bytes of an object are not those that were written: their checksum does not fit. Make the object again: ingest its scene, or train its model.',
  (name: string, url: string, detail: string) =>
    `${name} of the tile store ${url} is damaged: ${detail}; make it again from its source`,
);

export const storeExists = defineError(
  'TW_STORE_EXISTS',
  409,
  'The tile store has an object of this name with other content. Objects are never overwritten, so two writers have used one name; check that no two clusters share the place.',
  (name: string, url: string) =>
    `${name} is in the tile store ${url} with other content, and objects are never overwritten; check that no other cluster writes there`,
);

export const storeFull = defineError(
  'TW_STORE_FULL',
  507,
  'The tile store has no space left, or its quota is used up. Free space or raise the quota; nothing half-written stays.',
  (url: string) => `the tile store ${url} has no space left; free space or raise its quota, then try again`,
);

export const storeIo = defineError(
  'TW_STORE_IO',
  500,
  'The tile store answered with an error that does not pass by itself; the message names it.',
  (url: string, what: string, detail: string) => `${what} failed in the tile store ${url}: ${detail}`,
);

export const commitTooOld = defineError(
  'TW_STORAGE_TOO_OLD',
  409,
  'A node is asked for its tiles as of a commit that is too long ago, or from before it had all of these tiles. Ask another node, or as of a later commit.',
  (seq: number, oldest: number) =>
    `this node cannot answer as of commit ${seq}, but as of commit ${oldest} and later ones; ask another node, or as of a later commit`,
);
