/** Ids, names and paths of files, and texts that contain paths. Names from requests are checked here before they become part of a path. */
import { randomInt } from 'node:crypto';
import { join, resolve } from 'node:path';
import { type GridName, gridByName } from '../grid/index.js';
import { combineCrc32, type ImageFile } from '../raster/index.js';
import { storageBadName } from './errors.js';
import type { Checksum } from './files.js';
import type { GroupRecord, ModelVersionRecord, TileRecord } from './records.js';

const WORD = '[A-Za-z0-9][A-Za-z0-9._+-]*';
/** A file name has at most 255 bytes: a tile id (collection + scene + geocode + the suffix of a derived tile), its version and `.tmp`. */
const PATTERNS = {
  // No underscore: `<collection>_<scene>_<cell>` must come from one collection and scene only.
  'collection id': /^(?=.{1,64}$)[A-Za-z0-9][A-Za-z0-9.+-]*$/,
  'scene id': new RegExp(`^(?=.{1,120}$)${WORD}$`),
  'tile id': new RegExp(`^(?=.{1,235}$)${WORD}$`),
  'model name': new RegExp(`^(?=.{1,64}$)${WORD}$`),
  'band group': new RegExp(`^(?=.{1,64}$)${WORD}$`),
  'file name': new RegExp(`^(?=.{1,120}$)${WORD}$`),
  // S3 allows keys of up to 1024 bytes, including the prefix of the store; a file name has at most 255.
  'object name': new RegExp(`^(?=.{1,800}$)(?!.*[^/]{256})${WORD}(/${WORD})*$`),
  'start of an object name': new RegExp(`^(?=.{0,800}$)(${WORD}/)*(${WORD})?$`),
  version: /^[0-9a-z]{6,40}$/,
  'geohash geocode': /^[0-9b-hjkmnp-z]{1,9}$/,
  'quadtile geocode': /^[0-3]{1,24}$/,
  grid: /^(geohash|quadtile)$/,
} as const;

/** JSON Schema of a version, of the id of a job, and of the id of a run of a job. */
export const VERSION_SCHEMA = { type: 'string', pattern: PATTERNS.version.source } as const;

/** JSON Schema of the name of a file that a job made. */
export const FILE_NAME_SCHEMA = { type: 'string', pattern: PATTERNS['file name'].source } as const;

/** Returns the name if it fits the pattern of its kind. Throws TW_STORAGE_BAD_NAME. */
export function checkedName(kind: keyof typeof PATTERNS, name: string): string {
  // A name from a message or a document may be anything, and `test` would convert it to text.
  if (typeof name !== 'string' || !PATTERNS[kind].test(name)) throw storageBadName(kind, String(name));
  return name;
}

/** True if a name can be that of a version, a job, or a run of a job. */
export const isVersion = (name: string) => PATTERNS.version.test(name);

/** True if an object of a tile store may have this name. */
export const isObjectName = (name: string) => PATTERNS['object name'].test(name);

const WORD_PATTERN = new RegExp(`^${WORD}$`);
/** True if a name can be one part of an object name. */
export const isWord = (name: string) => WORD_PATTERN.test(name);

/** A cell in an id: the letter of its grid, then its geocode. */
function cellName(grid: GridName, geocode: string): string {
  return `${gridByName(grid).idPrefix}${geocode}`;
}

/** `<collection>_<scene>_<g or q><geocode>` */
export function tileId(collection: string, scene: string, grid: GridName, geocode: string): string {
  return `${collection}_${scene}_${cellName(grid, geocode)}`;
}

/** A tile made from others: `<collection>_<scene>_<g or q><geocode>_<source>-<digest>` */
export function derivedTileId(
  { collection, scene, grid, geocode, source }: DerivedName,
  digest: string,
): string {
  return checkedName('tile id', `${tileId(collection, scene, grid, geocode)}_${source}-${digest}`);
}

type DerivedName = Pick<TileRecord, 'collection' | 'scene' | 'grid' | 'geocode' | 'source'>;

/** The cell of a model whose area no single cell covers. */
export const WORLD_CELL = 'world';

/** The smallest cell that contains all the given cells of one grid, or `world`. */
export function commonCell(geocodes: string[]): string {
  let prefix = geocodes[0]!;
  for (const geocode of geocodes) while (!geocode.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix === '' ? WORLD_CELL : prefix;
}

/** `<model>_<collection>_<g or q><geocode>` */
export function modelId(model: string, collection: string, grid: GridName, geocode: string): string {
  return `${model}_${collection}_${cellName(grid, geocode)}`;
}

/** Returns the cell that an id of `modelId` names. */
export function geocodeOfModel(id: string): string {
  // The letter of the grid precedes it.
  return id.slice(id.lastIndexOf('_') + 2);
}

let lastTime = 0;

/**
 * A new version: milliseconds in 9 digits of base 36, then 6 random digits. Versions made by one process sort in the
 * order they were made, even if the clock steps back.
 */
export function newVersion(): string {
  lastTime = Math.max(Date.now(), lastTime + 1);
  const random = randomInt(36 ** 6)
    .toString(36)
    .padStart(6, '0');
  return firstVersionAt(lastTime) + random;
}

/** Sorts before all versions made at `time` (ms since 1970) or later, and after all earlier ones. */
export function firstVersionAt(time: number): string {
  return time.toString(36).padStart(9, '0');
}

/**
 * The properties that name the folder of a version, relative to the data folder: `tiles/<grid>/<first 3>/<geocode>/<tile id>.<version>` for
 * a tile, `models/<model>/<collection>/<grid>/<geocode>/<version>` for a model. Each name is checked before it becomes part of a path:
 * TW_STORAGE_BAD_NAME.
 */
export type TileVersion = Pick<TileRecord, 'id' | 'grid' | 'geocode' | 'version'>;
export type ModelVersion = Pick<ModelVersionRecord, 'model' | 'collection' | 'grid' | 'geocode' | 'version'>;

/** Folder of one version of a tile. */
export function tileFolder({ id, grid, geocode, version }: TileVersion): string {
  checkedName('grid', grid);
  checkedName(`${grid} geocode`, geocode);
  const cell = `tiles/${grid}/${geocode.slice(0, 3)}/${geocode}`;
  return `${cell}/${checkedName('tile id', id)}.${checkedName('version', version)}`;
}

/** The tile whose version a folder of `tileFolder` holds. */
export function tileOfFolder(folder: string): string {
  return folder.slice(folder.lastIndexOf('/') + 1, folder.lastIndexOf('.'));
}

/** The version of a folder of `tileFolder` or `modelFolder`. */
export function versionOfFolder(folder: string): string {
  return folder.slice(Math.max(folder.lastIndexOf('/'), folder.lastIndexOf('.')) + 1);
}

/** A file of a tile: the file of its groups that have this `file`. */
export function tileFile(tile: TileVersion, file: string): string {
  return `${tileFolder(tile)}/${checkedName('band group', file)}.tif`;
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

/** A file that a record names. */
export interface RecordedFile extends Checksum {
  /** Relative to the data folder. */
  path: string;
}

/** The part of a tile that places its files and the images in them. */
export interface TileLayout extends TileVersion {
  groups: Pick<GroupRecord, 'name' | 'file' | 'bytes' | 'crc32'>[];
}

/** The files that the record of a tile or of a version of a model names. */
export function filesOf(record: TileLayout | ModelVersionRecord): RecordedFile[] {
  if ('files' in record)
    return record.files.map(({ name, bytes, crc32 }) => ({ path: modelFile(record, name), bytes, crc32 }));
  const files = new Map<string, RecordedFile>();
  for (const { file, bytes, crc32 } of record.groups) {
    const start = files.get(file);
    const whole = start && { bytes: start.bytes + bytes, crc32: combineCrc32(start.crc32, crc32, bytes) };
    files.set(file, { path: tileFile(record, file), ...(whole ?? { bytes, crc32 }) });
  }
  return [...files.values()];
}

/** The files of a tile that hold some of its groups. */
export function filesOfGroups(tile: TileLayout, groups: Pick<GroupRecord, 'file'>[]): RecordedFile[] {
  const paths = new Set(groups.map(({ file }) => tileFile(tile, file)));
  return filesOf(tile).filter(({ path }) => paths.has(path));
}

/** The image of a group, with the path of its file relative to the data folder. Throws TW_STORAGE_BAD_NAME. */
export function tileImage(tile: TileLayout, name: string): ImageFile {
  let start = 0;
  const group = tile.groups.find((group) => group.name === name);
  for (const other of tile.groups) {
    if (other === group) break;
    if (other.file === group?.file) start += other.bytes;
  }
  if (!group) throw storageBadName('band group', name);
  return { path: tileFile(tile, group.file), start, bytes: group.bytes };
}

/** Entries of a data folder that tilewright creates. The folder may be one of the user's, with other entries. */
const OWN_ENTRIES = 'catalogue|columns|tiles|models|results|scratch|lock|node\\.json';

/**
 * Returns a function that makes paths below the data folder `dir` relative, in all texts of a JSON value, and returns a new
 * value. It throws if the value is not JSON.
 */
export function redactDataFolder(dir: string): <T>(value: T) => T {
  const folders = [...new Set([dir, resolve(dir)])].map((one) =>
    join(one, '/').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  );
  const pattern = new RegExp(`(?:${folders.join('|')})(?=(?:${OWN_ENTRIES})\\b)`, 'g');
  const relative = (_: string, value: unknown) =>
    typeof value === 'string' ? value.replace(pattern, '') : value;
  return (value) => (value === undefined ? value : JSON.parse(JSON.stringify(value), relative));
}
