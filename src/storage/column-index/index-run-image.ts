/** The rows of one run as arrays, for a snapshot. */
import { allocateColumns, type Columns } from './index-columns.js';

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
  /** True if a file of an older version did not contain the wavelengths, so all rows have none. */
  lacksWavelengths?: true;
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
