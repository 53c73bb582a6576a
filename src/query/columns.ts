/** The values of properties in the rows of the index, and tests of them. */
import { type CellParts, type Grid, grids } from '../grid/index.js';
import {
  type IndexRun,
  isWithin,
  type mergeRanges,
  type RowFilter,
  type RunFilter,
  rangeNamed,
} from '../storage/index.js';
import {
  type NumberProperty,
  type PropertyName,
  propertyKind,
  type TextProperty,
  type TimeProperty,
  type WavelengthProperty,
} from './filter.js';

/**
 * A test of rows by their cells. `decide` is called once for each cell; cells with a key in `inside` pass without it. Consecutive
 * rows often share a cell, so the last result is cached.
 */
export function cellPredicate(
  decide: (grid: Grid, geocode: string) => boolean,
  inside: ReturnType<typeof mergeRanges> = [],
): RunFilter {
  const known: CellValues<boolean> = new Map();
  return ({ columns: { grid, key, precision } }) => {
    let last = { grid: -1, key: -1, precision: -1, passes: false };
    return (row) => {
      const cell = { grid: grid[row], key: key[row], precision: precision[row] };
      if (cell.key === last.key && cell.precision === last.precision && cell.grid === last.grid)
        return last.passes;
      const passes =
        (inside.length > 0 && isWithin(inside, cell.grid, cell.key)) || cachedValue(known, cell, decide);
      last = { ...cell, passes };
      return passes;
    };
  };
}

/**
 * A test of rows by the areas in which their tiles hold data. `decide` returns the test of a cell whose parts all hold data, and
 * `decideParts` is called once for each cell with other tiles, and returns their test.
 */
export function areaPredicate(
  decide: (grid: Grid, geocode: string) => boolean,
  decideParts: (grid: Grid, geocode: string) => (parts: CellParts) => boolean,
  inside: ReturnType<typeof mergeRanges>,
): RunFilter {
  const wholeCells = cellPredicate(decide, inside);
  const known: CellValues<(parts: CellParts) => boolean> = new Map();
  return (rows) => {
    const isWholePassing = wholeCells(rows);
    if (!rows.hasPartialCells) return isWholePassing;
    const { grid, key, precision, northParts, southParts } = rows.columns;
    let last = { grid: -1, key: -1, precision: -1, test: always };
    return (row) => {
      const north = northParts[row];
      const south = southParts[row];
      if ((north & south) === ALL_BITS) return isWholePassing(row);
      if (key[row] !== last.key || precision[row] !== last.precision || grid[row] !== last.grid) {
        const cell = { grid: grid[row], key: key[row], precision: precision[row] };
        // A larger cell may begin inside and hold its data elsewhere.
        const end = cell.key + spanOf(cell.grid, cell.precision);
        const isInside = inside.length > 0 && isWithin(inside, cell.grid, cell.key, end);
        last = { ...cell, test: isInside ? always : cachedValue(known, cell, decideParts) };
      }
      return last.test({ north, south });
    };
  };
}

const always: (parts: CellParts) => boolean = () => true;

/** 32 bits that are set, as the result of a bitwise operator. */
const ALL_BITS = -1;

const spans = grids.map((): (number | undefined)[] => []);

/** The number of keys of a cell of this precision. */
function spanOf(grid: number, precision: number): number {
  const known = spans[grid][precision];
  if (known !== undefined) return known;
  const { span } = grids[grid].key(grids[grid].geocode(0, precision));
  spans[grid][precision] = span;
  return span;
}

/** Values by grid and precision, then by key. */
type CellValues<T> = Map<number, Map<number, T>>;

function cachedValue<T>(
  known: CellValues<T>,
  { grid, key, precision }: { grid: number; key: number; precision: number },
  compute: (grid: Grid, geocode: string) => T,
): T {
  const level = grid * 256 + precision;
  const values = known.get(level) ?? new Map<number, T>();
  known.set(level, values);
  const value = values.get(key) ?? compute(grids[grid], grids[grid].geocode(key, precision));
  values.set(key, value);
  return value;
}

/** Returns a value of a row. */
export type RowValue<T> = (row: number) => T;

// Texts

/** A row passes if its text is known and passes. */
export function textTest(property: TextProperty, passes: (text: string) => boolean): RunFilter {
  switch (property) {
    case 'id':
      return (rows) => (row) => passes(rows.idOf(row));
    case 'geocode':
      return cellPredicate((_, geocode) => passes(geocode));
    case 'grid:code':
      return cellPredicate((grid, geocode) => passes(formatGridCode(grid, geocode)));
    default:
      return (rows) => {
        const { codes, names } = namedColumn(rows, property);
        return nameTest(codes, names, passes);
      };
  }
}

/** The codes of a property, and the names that they stand for. */
function namedColumn(
  { columns, collections, platforms, sources, scenes }: IndexRun,
  property: 'collection' | 'platform' | 'source' | 'scene',
) {
  const dictionaries = { collection: collections, platform: platforms, source: sources, scene: scenes };
  return { codes: columns[property], names: dictionaries[property].names };
}

/** A test of rows by names. Each name is tested once. */
function nameTest(
  codes: ArrayLike<number>,
  names: readonly (string | null)[],
  passes: (text: string) => boolean,
): RowFilter {
  const UNKNOWN = 0;
  const NO = 1;
  const YES = 2;
  const answers = new Uint8Array(names.length);
  return (row) => {
    const code = codes[row]!;
    let answer = answers[code];
    if (answer === UNKNOWN) {
      const name = names[code]!;
      answer = name !== null && passes(name) ? YES : NO;
      answers[code] = answer;
    }
    return answer === YES;
  };
}

/** The grid code in Items: `GEOHASH-9q8yy`. */
const formatGridCode = (grid: Grid, geocode: string) => `${grid.name.toUpperCase()}-${geocode}`;

/** The text of a row; null if it has none. */
export function textOfRow(rows: IndexRun, property: TextProperty): RowValue<string | null> {
  switch (property) {
    case 'id':
      return (row) => rows.idOf(row);
    case 'geocode':
      return (row) => rows.geocodeOf(row);
    case 'grid:code':
      return (row) => formatGridCode(grids[rows.columns.grid[row]], rows.geocodeOf(row));
    default: {
      const { codes, names } = namedColumn(rows, property);
      return (row) => names[codes[row]!]!;
    }
  }
}

// Numbers

export const isNumber = (property: PropertyName): property is NumberProperty =>
  propertyKind(property) === 'number';
export const isWavelength = (property: NumberProperty): property is WavelengthProperty =>
  property.startsWith('hsi:');

/** Percentages as float32, NaN if unknown. Round values to float32 before comparing. */
export function numberColumn(
  { columns }: IndexRun,
  property: Exclude<NumberProperty, WavelengthProperty>,
): Float32Array {
  return property === 'eo:cloud_cover' ? columns.cloud : columns.coverage;
}

/** The number of a row; NaN if unknown. Percentages are float32. */
export function storedNumber(rows: IndexRun, property: NumberProperty): RowValue<number> {
  if (!isWavelength(property)) {
    const column = numberColumn(rows, property);
    return (row) => column[row]!;
  }
  const { wavelengths } = rows.columns;
  const end = property === 'hsi:wavelength_min' ? 'min' : 'max';
  const { names } = rows.wavelengthRanges;
  const ends = names.map((name) => (name === null ? Number.NaN : rangeNamed(name)[end]));
  return (row) => ends[wavelengths[row]!]!;
}

/** A row passes if its number is known and passes. */
export function numberTest(property: NumberProperty, passes: (value: number) => boolean): RunFilter {
  return (rows) => {
    const stored = storedNumber(rows, property);
    return (row) => {
      const value = stored(row);
      return !Number.isNaN(value) && passes(value);
    };
  };
}

/**
 * The number of a row; NaN if unknown. A percentage is the decimal with at most four fractional digits that has this float32, if there is
 * one: 20.1, not 20.100000381.
 */
export function numberOfRow(rows: IndexRun, property: NumberProperty): RowValue<number> {
  const stored = storedNumber(rows, property);
  if (isWavelength(property)) return stored;
  return (row) => {
    const single = stored(row);
    const decimal = Math.round(single * 1e4) / 1e4;
    return Math.fround(decimal) === single ? decimal : single;
  };
}

// Times

/** True for rows whose Item has a start and an end. */
export function hasTime({ columns: { start, end } }: IndexRun): RowFilter {
  return (row) => start[row] !== end[row];
}

/** Columns of the first and last time of a property, and a test if it is known. `datetime` is the entire time. */
export function timeColumns(rows: IndexRun, property: TimeProperty) {
  const { start, end, created } = rows.columns;
  switch (property) {
    case 'datetime':
      return { first: start, last: end };
    case 'start_datetime':
      return { first: start, last: start, known: hasTime(rows) };
    case 'end_datetime':
      return { first: end, last: end, known: hasTime(rows) };
    case 'created':
      return { first: created, last: created };
  }
}
