/**
 * Paths of the versions of tiles and models, relative to the data folder:
 * `tiles/<grid>/<first 3>/<geocode>/<tile id>/<version>/<group>.tif` and
 * `models/<model>/<collection>/<grid>/<geocode>/<version>/<file>`.
 * Each name is checked before it becomes part of a path: TW_STORAGE_BAD_NAME.
 */
import type { ModelVersionRecord, TileRecord } from '../records/index.js';
import type { Checksum } from './checksum.js';
import { checkedName, WORLD_CELL } from './file-names.js';

export type TileVersion = Pick<TileRecord, 'id' | 'grid' | 'geocode' | 'version'>;
export type ModelVersion = Pick<ModelVersionRecord, 'model' | 'collection' | 'grid' | 'geocode' | 'version'>;

/** Folder of one version of a tile. */
export function tileFolder({ id, grid, geocode, version }: TileVersion): string {
  checkedName('grid', grid);
  checkedName(`${grid} geocode`, geocode);
  const cell = `tiles/${grid}/${geocode.slice(0, 3)}/${geocode}`;
  return `${cell}/${checkedName('tile id', id)}/${checkedName('version', version)}`;
}

/** File of one band group of a tile. */
export function tileFile(tile: TileVersion, group: string): string {
  return `${tileFolder(tile)}/${checkedName('band group', group)}.tif`;
}

/** Folder of one version of a model. */
export function modelFolder({ model, collection, grid, geocode, version }: ModelVersion): string {
  checkedName('grid', grid);
  if (geocode !== WORLD_CELL) checkedName(`${grid} geocode`, geocode);
  const product = `${checkedName('model name', model)}/${checkedName('collection id', collection)}`;
  return `models/${product}/${grid}/${geocode}/${checkedName('version', version)}`;
}

/** One file of a model. */
export function modelFile(model: ModelVersion, name: string): string {
  return `${modelFolder(model)}/${checkedName('file name', name)}`;
}

/** The files that the record of a tile or of a version of a model names. */
export function filesOf(record: TileRecord | ModelVersionRecord): (Checksum & { path: string })[] {
  return 'groups' in record
    ? record.groups.map(({ name, bytes, crc32 }) => ({ path: tileFile(record, name), bytes, crc32 }))
    : record.files.map(({ name, bytes, crc32 }) => ({ path: modelFile(record, name), bytes, crc32 }));
}
