/** A run: columns, dictionaries, texts and orders of a part of the tiles of the index; the parts of tile ids. */
import { grids, parseParts } from '../../grid/index.js';
import { tileId } from '../file-names.js';
import type { TileRecord } from '../records.js';
import { rangeName, wavelengthRange } from '../tile-schema.js';
import { CellDirectory, gridCodes } from './cell-directory.js';
import {
  allocateColumns,
  type Columns,
  Dictionary,
  emptyImage,
  type RunImage,
  resizeColumns,
  runNames,
} from './columns.js';

/** Bytes before a text that contain its length. */
const LENGTH_BYTES = 2;

/**
 * Short texts in one buffer. They are added and never change; each is identified by its offset. Offset 0 is the empty text.
 *
 * Invariant: `bytes` up to `used` are texts in UTF-8, each after its length in bytes (little endian).
 */
class StringHeap {
  private constructor(
    private bytes: Buffer,
    private used: number,
  ) {}

  /** A heap with the `contents` of another one, or an empty heap. */
  static of({ buffer, byteOffset, length }: Uint8Array): StringHeap {
    return length === 0
      ? new StringHeap(Buffer.alloc(1024), LENGTH_BYTES)
      : new StringHeap(Buffer.from(buffer, byteOffset, length), length);
  }

  get contents(): Uint8Array {
    return this.bytes.subarray(0, this.used);
  }

  add(text: string): number {
    if (text === '') return 0;
    const length = Buffer.byteLength(text);
    if (length >= 1 << 16) throw new Error(`a text of ${length} bytes is too long for the column index`);
    const offset = this.reserve(LENGTH_BYTES + length);
    this.bytes.writeUInt16LE(length, offset);
    this.bytes.write(text, offset + LENGTH_BYTES);
    return offset;
  }

  get(offset: number): string {
    if (offset === 0) return '';
    const from = offset + LENGTH_BYTES;
    return this.bytes.toString('utf8', from, from + this.bytes.readUInt16LE(offset));
  }

  /** True if the text begins with the ASCII character of this code. */
  beginsWith(offset: number, code: number): boolean {
    return offset !== 0 && this.bytes[offset + LENGTH_BYTES] === code;
  }

  /** Adds a text of another heap. */
  copy(from: StringHeap, at: number): number {
    if (at === 0) return 0;
    const length = LENGTH_BYTES + from.bytes.readUInt16LE(at);
    const offset = this.reserve(length);
    from.bytes.copy(this.bytes, offset, at, at + length);
    return offset;
  }

  private reserve(length: number): number {
    const offset = this.used;
    this.used += length;
    if (this.used > this.bytes.length) {
      const larger = Buffer.alloc(2 * this.used);
      this.bytes.copy(larger, 0, 0, offset);
      this.bytes = larger;
    }
    return offset;
  }
}

const MAX_UINT32 = 2 ** 32 - 1;

/** Initial capacity of an empty run. */
const INITIAL_ROWS = 1_024;

/** First character of a text that is a tile's entire id. */
const CUSTOM_ID_MARK = '\0';

/** 32 bits that are set, as the result of a bitwise operator. */
const ALL_BITS = -1;

const PRESENT = 0;
/** Marks a row that is not needed any more; the next compaction drops it. */
export const OBSOLETE = 1;
/** Marks a removed row that a read as of an earlier commit may need. */
export const KEPT_FOR_UNDO = 2;
export type Mark = typeof OBSOLETE | typeof KEPT_FOR_UNDO;

/** A row and its run. */
export interface RowRef {
  rows: IndexRun;
  row: number;
}

/**
 * The rows of a run. Rows are added at the end. A row never changes and keeps its number; if its tile is removed, only its mark in
 * `removed` changes. Codes and text offsets refer to the dictionaries and texts of the same run.
 * Invariants: the rows before `cells.rows` are sorted by (grid, key, precision, start). `newest` has each of these rows
 * once, newest first; `rank` is its inverse. `byId` has the present rows that cannot be found by their cell: unsorted ones,
 * and those with an unusual id. `obsolete` and `keptForUndo` count the rows with these marks.
 */
export class IndexRun {
  columns: Columns;
  removed: Uint8Array;
  rowCount: number;
  readonly cells: CellDirectory;
  /** False if all rows are present. */
  hasGaps: boolean;
  /** False if every tile holds data in all parts of its cell. */
  hasPartialCells: boolean;
  newest: Uint32Array;
  rank: Uint32Array;
  readonly collections: Dictionary;
  readonly platforms: Dictionary;
  readonly sources: Dictionary;
  readonly scenes: Dictionary;
  /** Names made by `rangeName`. */
  readonly wavelengthRanges: Dictionary;
  readonly texts: StringHeap;
  obsolete = 0;
  keptForUndo = 0;
  /** Rows that were marked since a compaction began to read this run; undefined if none is running. */
  marked: number[] | undefined;
  private readonly byId = new Map<string, number>();

  /** Takes over the arrays of an image. `cellCapacity` is the initial capacity of the cell directory. */
  constructor(image: RunImage, cellCapacity?: number) {
    this.columns = image.columns;
    this.removed = image.removed;
    this.rowCount = image.rows;
    this.cells = new CellDirectory(this.columns, cellCapacity);
    this.cells.extend(image.sorted);
    this.newest = image.newest;
    this.rank = new Uint32Array(image.sorted);
    for (let i = 0; i < image.sorted; i++) this.rank[image.newest[i]] = i;
    const { collections, platforms, sources, scenes, wavelengthRanges } = image.names;
    this.collections = new Dictionary(MAX_UINT32, collections);
    this.platforms = new Dictionary(MAX_UINT32, platforms);
    this.sources = new Dictionary(2 ** 8, sources);
    this.scenes = new Dictionary(MAX_UINT32, scenes);
    this.wavelengthRanges = new Dictionary(MAX_UINT32, wavelengthRanges);
    this.texts = StringHeap.of(image.texts);
    const { removed, rows, sorted, columns } = image;
    const { suffix } = columns;
    for (let row = 0; row < rows; row++) {
      if (removed[row] !== PRESENT) {
        removed[row] = OBSOLETE;
        this.obsolete++;
      } else if (row >= sorted || suffix[row] !== 0) this.register(row);
    }
    this.hasGaps = this.obsolete > 0;
    const { northParts, southParts } = columns;
    this.hasPartialCells = false;
    for (let row = 0; row < rows && !this.hasPartialCells; row++)
      this.hasPartialCells = (northParts[row] & southParts[row]) !== ALL_BITS;
  }

  /** An empty run with the capacity of these columns. */
  static empty(columns = allocateColumns(INITIAL_ROWS), cellCapacity?: number): IndexRun {
    const names = runNames(() => []);
    const removed = new Uint8Array(columns.grid.length);
    return new IndexRun({ ...emptyImage(0, 0, 0, names), columns, removed }, cellCapacity);
  }

  /** Number of present rows. */
  get present(): number {
    return this.rowCount - this.obsolete - this.keptForUndo;
  }

  /** Number of rows that are not sorted. */
  get unsorted(): number {
    return this.rowCount - this.cells.rows;
  }

  /** An image of the current rows, which later changes do not affect. */
  image(): RunImage {
    return {
      rows: this.rowCount,
      sorted: this.cells.rows,
      columns: this.columns,
      removed: this.removed.slice(),
      newest: this.newest,
      texts: this.texts.contents,
      names: runNames((dictionary) => this[dictionary].names.slice()),
    };
  }

  // Changes

  /** Adds the row of a tile; `findById` finds it after `register`. Throws TW_GEOCODE_INVALID, and adds nothing, for an invalid geocode. */
  append(record: TileRecord): number {
    const grid = gridCodes.get(record.grid)!;
    const { key } = grids[grid].key(record.geocode);
    const row = this.reserve(1);
    const { columns } = this;
    columns.grid[row] = grid;
    columns.key[row] = key;
    columns.precision[row] = record.geocode.length;
    columns.start[row] = record.start;
    columns.end[row] = record.end;
    columns.created[row] = record.createdAt;
    columns.cloud[row] = record.cloudCover ?? NaN;
    columns.coverage[row] = record.coverage;
    columns.bytes[row] = bytesIn(record);
    const { north, south } = parseParts(record.dataParts);
    columns.northParts[row] = north;
    columns.southParts[row] = south;
    this.hasPartialCells ||= record.dataParts !== undefined;
    columns.collection[row] = this.collections.add(record.collection);
    columns.platform[row] = this.platforms.add(record.platform);
    columns.source[row] = this.sources.add(record.source);
    columns.scene[row] = this.scenes.add(record.scene);
    columns.wavelengths[row] = this.wavelengthRanges.add(rangeName(wavelengthRange(record.groups)));
    columns.suffix[row] = this.texts.add(suffixOf(record));
    return row;
  }

  /** Enables `findById` to find a row that cannot be found by its cell. */
  register(row: number, id?: string): void {
    if (!this.isFoundByCell(row)) this.byId.set(id ?? this.idOf(row), row);
  }

  /** Adds rows that the caller fills, and returns the number of the first. */
  reserve(count: number): number {
    const first = this.rowCount;
    this.rowCount += count;
    if (this.rowCount > this.removed.length) {
      const { columns, removed } = this;
      this.columns = resizeColumns(columns, 2 * this.rowCount);
      this.cells.columns = this.columns;
      this.removed = new Uint8Array(2 * this.rowCount);
      this.removed.set(removed);
    }
    return first;
  }

  /** Marks a present row, or changes the mark of a row that is kept for undo. */
  mark(row: number, mark: Mark): void {
    if (this.removed[row] === KEPT_FOR_UNDO) this.keptForUndo--;
    else if (!this.isFoundByCell(row)) {
      const id = this.idOf(row);
      // Another row may have the same id by now.
      if (this.byId.get(id) === row) this.byId.delete(id);
    }
    this.removed[row] = mark;
    if (mark === OBSOLETE) this.obsolete++;
    else this.keptForUndo++;
    this.hasGaps = true;
    this.marked?.push(row);
  }

  // Reading

  /** True if `append` would make the same row of a record. */
  agrees(row: number, record: TileRecord): boolean {
    const { columns } = this;
    const { north, south } = parseParts(record.dataParts);
    return (
      this.idOf(row) === record.id &&
      grids[columns.grid[row]].name === record.grid &&
      this.geocodeOf(row) === record.geocode &&
      columns.start[row] === record.start &&
      columns.end[row] === record.end &&
      columns.created[row] === record.createdAt &&
      Object.is(columns.cloud[row], Math.fround(record.cloudCover ?? NaN)) &&
      columns.coverage[row] === Math.fround(record.coverage) &&
      columns.bytes[row] === bytesIn(record) &&
      columns.northParts[row] === north &&
      columns.southParts[row] === south &&
      this.collections.names[columns.collection[row]] === record.collection &&
      this.platforms.names[columns.platform[row]] === record.platform &&
      this.sources.names[columns.source[row]] === record.source &&
      this.scenes.names[columns.scene[row]] === record.scene &&
      this.wavelengthRanges.names[columns.wavelengths[row]] === rangeName(wavelengthRange(record.groups))
    );
  }

  /** The id of a row's tile. With `fold`, each of its parts is folded. */
  idOf(row: number, fold: (part: string) => string = itself): string {
    const { collection, scene, grid } = this.columns;
    const text = this.suffixOf(row);
    if (text.startsWith(CUSTOM_ID_MARK)) return fold(text.slice(1));
    const collectionName = fold(this.collections.names[collection[row]]!);
    const sceneName = fold(this.scenes.names[scene[row]]!);
    const { name } = grids[grid[row]];
    const end = text === '' ? text : fold(text);
    return tileId(collectionName, sceneName, name, this.geocodeOf(row)) + end;
  }

  /** The part of a tile's id after its collection, scene and cell: empty, or `_...`. Meaningless if `hasCustomId`. */
  suffixOf(row: number): string {
    return this.texts.get(this.columns.suffix[row]);
  }

  /** True if the id does not begin with the collection, the scene and the cell. */
  hasCustomId(row: number): boolean {
    return this.texts.beginsWith(this.columns.suffix[row], 0);
  }

  geocodeOf(row: number): string {
    const { grid, key, precision } = this.columns;
    return grids[grid[row]].geocode(key[row], precision[row]);
  }

  cellOf(row: number): { grid: TileRecord['grid']; geocode: string } {
    return { grid: grids[this.columns.grid[row]].name, geocode: this.geocodeOf(row) };
  }

  /** True if the row can be found by its cell: it is sorted, and its id follows from its other columns and a suffix. */
  isFoundByCell(row: number): boolean {
    return row < this.cells.rows && !this.hasCustomId(row);
  }

  /** The present row of an id, if it cannot be found by its cell. */
  findById(id: string): number | undefined {
    const row = this.byId.size > 0 ? this.byId.get(id) : undefined;
    // During a read as of an earlier commit, `byId` may refer to a later row.
    return row !== undefined && this.removed[row] === PRESENT ? row : undefined;
  }

  /** The present row of an id, if it can be found by its cell. */
  findInCell({ grid, key, precision, names, suffix }: TileIdParts): number | undefined {
    const [from, to] = this.cells.rowsOf(grid, key, precision);
    if (from === to) return undefined;
    const { columns, removed } = this;
    for (let at = names.indexOf('_'); at >= 0; at = names.indexOf('_', at + 1)) {
      const collection = this.collections.codeOf(names.slice(0, at));
      if (collection === undefined) continue;
      const scene = this.scenes.codeOf(names.slice(at + 1));
      if (scene === undefined) continue;
      for (let row = from; row < to; row++) {
        if (columns.scene[row] !== scene || columns.collection[row] !== collection || removed[row]) continue;
        if (this.suffixOf(row) === suffix) return row;
      }
    }
    return undefined;
  }

  // Orders

  /** Compares rows by (grid, key, precision, start). */
  compareCells(a: number, b: number): number {
    return compareCells(this, a, this, b);
  }

  /** Newest first: by start descending, then collection, then id. */
  compareNewest(a: number, b: number): number {
    const { rank } = this;
    if (a < rank.length && b < rank.length) return rank[a] - rank[b];
    return compareNewest(this, a, this, b);
  }
}

/** Compares row `i` of `a` with row `j` of `b` by (grid, key, precision, start). */
export function compareCells(
  { columns: a }: IndexRun,
  i: number,
  { columns: b }: IndexRun,
  j: number,
): number {
  return (
    a.grid[i] - b.grid[j] || a.key[i] - b.key[j] || a.precision[i] - b.precision[j] || a.start[i] - b.start[j]
  );
}

/** Compares row `i` of `a` with row `j` of `b`, newest first: by start descending, then collection, then id. */
export function compareNewest(a: IndexRun, i: number, b: IndexRun, j: number): number {
  return b.columns.start[j] - a.columns.start[i] || compareIds(a, i, b, j);
}

/** Compares rows by collection, then id. */
export function compareIds(a: IndexRun, i: number, b: IndexRun, j: number): number {
  const { columns: p } = a;
  const { columns: q } = b;
  const difference = compareText(
    a.collections.names[p.collection[i]]!,
    b.collections.names[q.collection[j]]!,
  );
  if (difference !== 0) return difference;
  // Most ids can be compared without building them.
  if (p.suffix[i] === 0 && q.suffix[j] === 0) {
    const one = a.scenes.names[p.scene[i]]!;
    const other = b.scenes.names[q.scene[j]]!;
    if (one === other) {
      if (p.grid[i] === q.grid[j]) return p.key[i] - q.key[j] || p.precision[i] - q.precision[j];
    } else if (!one.startsWith(other) && !other.startsWith(one)) return one < other ? -1 : 1;
  }
  return compareText(a.idOf(i), b.idOf(j));
}

/** Compares by code units, independent of the locale. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

const itself = (text: string) => text;

/** The suffix of a tile's id as `suffixOf` returns it. For a custom id, `CUSTOM_ID_MARK` and the id. */
function suffixOf({ id, collection, scene, grid, geocode }: TileRecord): string {
  const usual = tileId(collection, scene, grid, geocode);
  const rest = id.slice(usual.length);
  return id.startsWith(usual) && (rest === '' || rest.startsWith('_')) ? rest : CUSTOM_ID_MARK + id;
}

function bytesIn({ groups }: TileRecord): number {
  return Math.min(
    groups.reduce((sum, { bytes }) => sum + bytes, 0),
    MAX_UINT32,
  );
}

/** One way to parse an id as `<collection>_<scene>_<grid letter><geocode><suffix>`. */
interface TileIdParts {
  /** The cell: code of the grid, then key and precision of the geocode. */
  grid: number;
  key: number;
  precision: number;
  /** `<collection>_<scene>`. Both may contain underscores, so any of them may separate the two. */
  names: string;
  /** Empty, or begins with an underscore. */
  suffix: string;
}

/**
 * Parses an id so that its cell ends before `end` and as late as possible; returns undefined if this is impossible. Names may
 * contain words that look like cells: for the next alternative, pass the length of the previous `names` as `end`.
 */
export function parseTileId(id: string, end = id.length): TileIdParts | undefined {
  for (let to = end; to > 0; ) {
    const at = id.lastIndexOf('_', to - 1);
    if (at < 0) return undefined;
    const first = id[at + 1];
    const grid = grids.findIndex(({ idPrefix }) => idPrefix === first);
    const geocode = grid < 0 ? '' : id.slice(at + 2, to);
    if (grid >= 0 && grids[grid].accepts(geocode)) {
      const { key } = grids[grid].key(geocode);
      return { grid, key, precision: geocode.length, names: id.slice(0, at), suffix: id.slice(to) };
    }
    to = at;
  }
  return undefined;
}
