/** All that the index holds of its tiles, by row. */
import { grids } from '../geocode/index.js';
import { CellDirectory } from './cell-directory.js';
import { type Columns, Dictionary, resize } from './columns.js';
import { gridCode } from './key-range.js';
import { tileId } from './names.js';
import type { TileRecord } from './records.js';
import { emptyImage, type RowsImage, type RowsNames } from './rows-image.js';
import { TextHeap } from './text-heap.js';

/** Names that outlive a merge of the rows. */
export class SharedNames {
  readonly collections: Dictionary;
  readonly platforms: Dictionary;
  readonly sources: Dictionary;

  constructor(names?: RowsNames) {
    this.collections = new Dictionary(2 ** 16, names?.collections);
    this.platforms = new Dictionary(2 ** 16, names?.platforms);
    this.sources = new Dictionary(2 ** 8, names?.sources);
  }
}

const MOST_BYTES = 2 ** 32 - 1;

/** A text that begins with this is a tile's whole id. */
const WHOLE = '\0';

/**
 * Rows are added at the end. A row never changes and keeps its place; when its tile goes, only its mark is set.
 * Invariants: the rows before `cells.rows` are sorted by (grid, key, precision, start), the others are the tail. `newest`
 * holds each of the sorted rows once, newest first.
 */
export class Rows {
  columns: Columns;
  /** 1 where the tile has gone. */
  removed: Uint8Array;
  /** The rows of tiles that have gone since the last merge, in the order in which they went. */
  readonly removals: number[] = [];
  used: number;
  readonly cells: CellDirectory;
  /** Whether any row is marked. */
  hasGaps: boolean;
  newest: Uint32Array;
  /** The place of each sorted row in `newest`. */
  rank: Uint32Array;
  readonly scenes: Dictionary;
  readonly texts: TextHeap;

  /** The rows of an image, whose arrays become theirs. */
  constructor(
    readonly names: SharedNames,
    image: RowsImage,
  ) {
    this.columns = image.columns;
    this.removed = image.removed;
    this.used = image.rows;
    this.cells = new CellDirectory(this.columns);
    this.cells.extend(image.sorted);
    this.hasGaps = image.removed.includes(1);
    this.newest = image.newest;
    this.rank = new Uint32Array(image.sorted);
    for (let i = 0; i < image.sorted; i++) this.rank[image.newest[i]] = i;
    this.scenes = new Dictionary(2 ** 32 - 1, image.names.scenes);
    this.texts = TextHeap.of(image.texts);
  }

  /** No rows, with room for so many and some more. */
  static empty(names: SharedNames, capacity: number): Rows {
    const image = emptyImage(capacity, 0, 0, { collections: [], platforms: [], sources: [], scenes: [] });
    return new Rows(names, { ...image, rows: 0 });
  }

  /** What the rows are now. It stays so, whatever is added or removed later. */
  image(): RowsImage {
    const { collections, platforms, sources } = this.names;
    return {
      rows: this.used,
      sorted: this.cells.rows,
      columns: this.columns,
      removed: this.removed.slice(),
      newest: this.newest,
      texts: this.texts.contents,
      names: {
        collections: collections.names.slice(),
        platforms: platforms.names.slice(),
        sources: sources.names.slice(),
        scenes: this.scenes.names.slice(),
      },
    };
  }

  /** The row of a new tile. Throws TW_GEOCODE_INVALID and adds nothing where the geocode is none of the grid. */
  append(record: TileRecord): number {
    const { names } = this;
    const grid = gridCode.get(record.grid)!;
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
    columns.collection[row] = names.collections.add(record.collection);
    columns.platform[row] = names.platforms.add(record.platform);
    columns.source[row] = names.sources.add(record.source);
    columns.scene[row] = this.scenes.add(record.scene);
    columns.suffix[row] = this.texts.add(suffixOf(record));
    return row;
  }

  /** Whether a row says what `append` would make of a record. */
  agrees(row: number, record: TileRecord): boolean {
    const { columns, names, scenes } = this;
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
      names.collections.names[columns.collection[row]] === record.collection &&
      names.platforms.names[columns.platform[row]] === record.platform &&
      names.sources.names[columns.source[row]] === record.source &&
      scenes.names[columns.scene[row]] === record.scene
    );
  }

  /** Adds rows that the caller fills, and returns the first of them. */
  reserve(count: number): number {
    const first = this.used;
    this.used += count;
    if (this.used > this.removed.length) {
      const { columns, removed } = this;
      this.columns = resize(columns, 2 * this.used);
      this.cells.columns = this.columns;
      this.removed = new Uint8Array(2 * this.used);
      this.removed.set(removed);
    }
    return first;
  }

  remove(row: number): void {
    this.removed[row] = 1;
    this.removals.push(row);
    this.hasGaps = true;
  }

  idOf(row: number): string {
    const { collection, scene, grid, suffix } = this.columns;
    const text = this.texts.get(suffix[row]);
    if (text.startsWith(WHOLE)) return text.slice(1);
    const { collections } = this.names;
    const name = grids[grid[row]].name;
    return (
      tileId(collections.names[collection[row]]!, this.scenes.names[scene[row]]!, name, this.geocodeOf(row)) +
      text
    );
  }

  geocodeOf(row: number): string {
    const { grid, key, precision } = this.columns;
    return grids[grid[row]].geocode(key[row], precision[row]);
  }

  /** Whether the row's id does not follow from its other columns and a suffix. */
  isOdd(row: number): boolean {
    return this.texts.beginsWith(this.columns.suffix[row], 0);
  }

  /** Whether `find` finds the row. */
  isFoundByCell(row: number): boolean {
    return row < this.cells.rows && (this.columns.suffix[row] === 0 || !this.isOdd(row));
  }

  /**
   * The sorted row of an id that is not odd; a tile that has gone is passed over. The cell is one of the words between
   * the underscores of the id; a scene's id may hold words that look like cells, so all are tried, the last one first.
   */
  find(id: string): number | undefined {
    for (let end = id.length; end > 0; ) {
      const at = id.lastIndexOf('_', end - 1);
      if (at < 0) return undefined;
      const found = this.findIn(id.slice(at + 1, end), id.slice(0, at), id.slice(end));
      if (found !== undefined) return found;
      end = at;
    }
    return undefined;
  }

  private findIn(cell: string, sceneName: string, suffix: string): number | undefined {
    const code = grids.findIndex((grid) => grid.letter === cell[0]);
    const geocode = cell.slice(1);
    if (code < 0 || !grids[code].accepts(geocode)) return undefined;
    const [from, to] = this.cells.rowsOf(code, grids[code].key(geocode).key, geocode.length);
    if (from === to) return undefined;
    const { columns, names, removed } = this;
    // Where the collection ends and the scene begins is not known if either holds underscores.
    for (let at = sceneName.indexOf('_'); at >= 0; at = sceneName.indexOf('_', at + 1)) {
      const collection = names.collections.codeOf(sceneName.slice(0, at));
      const scene = this.scenes.codeOf(sceneName.slice(at + 1));
      if (collection === undefined || scene === undefined) continue;
      for (let row = from; row < to; row++) {
        if (columns.scene[row] !== scene || columns.collection[row] !== collection || removed[row]) continue;
        if (this.texts.get(columns.suffix[row]) === suffix) return row;
      }
    }
    return undefined;
  }

  /** By (grid, key, precision, start). */
  compareCells(a: number, b: number): number {
    const { grid, key, precision, start } = this.columns;
    return grid[a] - grid[b] || key[a] - key[b] || precision[a] - precision[b] || start[a] - start[b];
  }

  /** Newest first: by start descending, then collection, then id. */
  compareNewest(a: number, b: number): number {
    const { rank } = this;
    if (a < rank.length && b < rank.length) return rank[a] - rank[b];
    const { start } = this.columns;
    return start[b] - start[a] || this.compareIds(a, b);
  }

  /** By collection, then id. */
  private compareIds(a: number, b: number): number {
    const { collection, scene, suffix, grid, key, precision } = this.columns;
    if (collection[a] !== collection[b]) {
      const { names } = this.names.collections;
      return compareText(names[collection[a]]!, names[collection[b]]!);
    }
    // Most ids can be compared without making them.
    if ((suffix[a] | suffix[b]) === 0) {
      if (scene[a] === scene[b] && grid[a] === grid[b]) return key[a] - key[b] || precision[a] - precision[b];
      const [one, other] = [this.scenes.names[scene[a]]!, this.scenes.names[scene[b]]!];
      if (!one.startsWith(other) && !other.startsWith(one)) return one < other ? -1 : 1;
    }
    return compareText(this.idOf(a), this.idOf(b));
  }
}

/** By code units: the same everywhere, whatever the locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a tile's id has beyond its collection, scene and cell: nothing, or `_...`; else `WHOLE` and the id. */
function suffixOf({ id, collection, scene, grid, geocode }: TileRecord): string {
  const usual = tileId(collection, scene, grid, geocode);
  const rest = id.slice(usual.length);
  return id.startsWith(usual) && (rest === '' || rest.startsWith('_')) ? rest : WHOLE + id;
}

function bytesIn({ groups }: TileRecord): number {
  return Math.min(
    groups.reduce((sum, { bytes }) => sum + bytes, 0),
    MOST_BYTES,
  );
}
