/** Typed arrays of equal length, one for each field of a tile, and their dictionaries; images of the rows of a run, for snapshots. */

/** The type of each column. */
const COLUMN_TYPES = {
  /** Index of the grid in `grids`. */
  grid: Uint8Array,
  /** `Grid.key` of the geocode. */
  key: Float64Array,
  precision: Uint8Array,
  /** Milliseconds since 1970. */
  start: Float64Array,
  end: Float64Array,
  created: Float64Array,
  /** Percent; NaN if unknown. */
  cloud: Float32Array,
  coverage: Float32Array,
  /** Total size of the tile's files, at most 2^32 - 1. */
  bytes: Uint32Array,
  /** The halves of the tile's `CellParts`. */
  northParts: Uint32Array,
  southParts: Uint32Array,
  /** Codes of the run's dictionaries. */
  collection: Uint32Array,
  platform: Uint32Array,
  source: Uint8Array,
  scene: Uint32Array,
  wavelengths: Uint32Array,
  /** Offset in the `StringHeap` of the part of the tile's id that does not follow from the other columns. */
  suffix: Uint32Array,
};

/** The columns, indexed by row. */
export type Columns = { [Name in keyof typeof COLUMN_TYPES]: InstanceType<(typeof COLUMN_TYPES)[Name]> };

export const columnNames = Object.keys(COLUMN_TYPES) as (keyof Columns)[];

/** Numbers for strings that many rows share. `null` is a value as well. */
export class Dictionary {
  readonly names: (string | null)[] = [];
  private readonly codes = new Map<string | null, number>();

  /** `names` are all different. */
  constructor(
    private readonly maxCodes: number,
    names: readonly (string | null)[] = [],
  ) {
    for (const name of names) this.add(name);
  }

  codeOf(name: string | null): number | undefined {
    return this.codes.get(name);
  }

  add(name: string | null): number {
    const known = this.codes.get(name);
    if (known !== undefined) return known;
    const code = this.names.length;
    if (code === this.maxCodes) throw new Error(`the column index holds at most ${code} names in one column`);
    this.names.push(name);
    this.codes.set(name, code);
    return code;
  }
}

/** Columns with room for a number of rows. */
export function allocateColumns(rows: number): Columns {
  const columns = columnNames.map((name) => [name, new COLUMN_TYPES[name](rows)]);
  return Object.fromEntries(columns) as Columns;
}

/**
 * Like `allocateColumns`, with a yield after each column. A large array often triggers garbage collection in V8, so allocating all of
 * them in one turn would block the event loop for long.
 */
export function* allocateColumnsInSteps(rows: number): Generator<void, Columns> {
  const columns = allocateColumns(0);
  for (const name of columnNames) {
    Object.assign(columns, { [name]: new COLUMN_TYPES[name](rows) });
    yield;
  }
  return columns;
}

/** A copy of columns with room for `rows` rows. */
export function resizeColumns(old: Columns, rows: number): Columns {
  const columns = allocateColumns(rows);
  for (const name of columnNames) columns[name].set(old[name]);
  return columns;
}

/** The columns of codes, and the dictionaries of a run that have their names. */
export const DICTIONARIES = [
  ['collection', 'collections'],
  ['platform', 'platforms'],
  ['source', 'sources'],
  ['scene', 'scenes'],
  ['wavelengths', 'wavelengthRanges'],
] as const;

type DictionaryName = (typeof DICTIONARIES)[number][1];

/** The names of each dictionary, by code. */
export type RunNames = Record<DictionaryName, (string | null)[]>;

export function runNames(namesOf: (dictionary: DictionaryName) => (string | null)[]): RunNames {
  return Object.fromEntries(DICTIONARIES.map(([, name]) => [name, namesOf(name)])) as RunNames;
}

/**
 * The rows of a run at one moment. Its arrays may be longer than `rows`. All except `removed` stay equal while the run has
 * the same `columns` and the same number of rows.
 */
export interface RunImage {
  rows: number;
  /** Number of sorted rows, which come first, and of entries of `newest`. */
  sorted: number;
  columns: Columns;
  /** 0 for each present row. */
  removed: Uint8Array;
  newest: Uint32Array;
  texts: Uint8Array;
  names: RunNames;
}

/** An empty image for the caller to fill. `texts` is a size in bytes. */
export function emptyImage(rows: number, sorted: number, texts: number, names: RunNames): RunImage {
  return {
    rows,
    sorted,
    columns: allocateColumns(rows),
    removed: new Uint8Array(rows),
    newest: new Uint32Array(sorted),
    texts: new Uint8Array(texts),
    names,
  };
}
