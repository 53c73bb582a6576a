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
import type { LikePattern, LikePositions } from './operators.js';

/**
 * A test of rows by their cells. `decide` is called once for each cell; cells with a key in `inside` pass without it. Consecutive
 * rows often share a cell, so the last result is cached.
 */
export function cellPredicate(
  decide: (grid: Grid, geocode: string) => boolean,
  inside: ReturnType<typeof mergeRanges> = [],
): RunFilter {
  const decided: CellValues<boolean> = new Map();
  return ({ columns: { grid, key, precision } }) => {
    // Separate variables, because an object for each row costs more than the test.
    let lastGrid = -1;
    let lastKey = -1;
    let lastPrecision = -1;
    let passes = false;
    return (row) => {
      if (key[row] === lastKey && precision[row] === lastPrecision && grid[row] === lastGrid) return passes;
      lastGrid = grid[row];
      lastKey = key[row];
      lastPrecision = precision[row];
      passes =
        (inside.length > 0 && isWithin(inside, lastGrid, lastKey)) ||
        cachedValue(decided, { grid: lastGrid, key: lastKey, precision: lastPrecision }, decide);
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

type Fold = (text: string) => string;

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

/** The folded text of a row; null if it has none. Names are folded once. */
export function textOfRow(rows: IndexRun, property: TextProperty, fold: Fold): RowValue<string | null> {
  switch (property) {
    case 'id': {
      const foldName = memoizedFold(fold);
      return (row) => rows.idOf(row, foldName);
    }
    case 'geocode':
      return (row) => fold(rows.geocodeOf(row));
    case 'grid:code':
      return (row) => fold(formatGridCode(grids[rows.columns.grid[row]], rows.geocodeOf(row)));
    default: {
      const { codes, names } = namedColumn(rows, property);
      const foldName = memoizedFold(fold);
      return (row) => {
        const name = names[codes[row]!]!;
        return name === null ? null : foldName(name);
      };
    }
  }
}

function memoizedFold(fold: Fold): Fold {
  const folded = new Map<string, string>();
  return (text) => {
    let result = folded.get(text);
    if (result === undefined) {
      result = fold(text);
      folded.set(text, result);
    }
    return result;
  };
}

/**
 * A test of ids, of which each part is folded: `<collection>_<scene>_<cell><suffix>`. The pattern is matched once with each collection,
 * once with each scene from the positions that collections lead to, and once with each cell from the positions that scenes lead to.
 */
export function idLikeTest(pattern: LikePattern, fold: Fold, negated: boolean): RunFilter {
  return (rows) => {
    const { collection, scene, grid, key, precision } = rows.columns;
    // Few sets of positions occur; each has a number. The pattern often returns the same object.
    const numbers = new Map<LikePositions | string, number>();
    const sets: LikePositions[] = [];
    const numberOf = (positions: LikePositions) => {
      let number = numbers.get(positions);
      if (number !== undefined) return number;
      const name = positions.join();
      number = numbers.get(name) ?? sets.push(positions) - 1;
      numbers.set(name, number);
      if (sets[number] === positions) numbers.set(positions, number);
      return number;
    };
    const start = numberOf(pattern.start);
    const after = (from: number, text: string) => numberOf(pattern.after(sets[from]!, text));
    const afterCollections = new Int32Array(rows.collections.names.length).fill(-1);
    const sceneCount = rows.scenes.names.length;
    const afterScenes = new Map<number, number>();
    let cell = { grid: -1, key: -1, precision: -1, after: new Map<number, number>() };
    const positionsOf = (row: number) => {
      const collectionCode = collection[row]!;
      let from = afterCollections[collectionCode]!;
      if (from < 0) {
        from = after(start, `${fold(rows.collections.names[collectionCode]!)}_`);
        afterCollections[collectionCode] = from;
      }
      const sceneKey = from * sceneCount + scene[row]!;
      let afterScene = afterScenes.get(sceneKey);
      if (afterScene === undefined) {
        afterScene = after(from, `${fold(rows.scenes.names[scene[row]!]!)}_`);
        afterScenes.set(sceneKey, afterScene);
      }
      if (key[row] !== cell.key || precision[row] !== cell.precision || grid[row] !== cell.grid)
        cell = { grid: grid[row], key: key[row], precision: precision[row], after: new Map() };
      let afterCell = cell.after.get(afterScene);
      if (afterCell === undefined) {
        afterCell = after(afterScene, grids[cell.grid].idPrefix + rows.geocodeOf(row));
        cell.after.set(afterScene, afterCell);
      }
      return sets[afterCell]!;
    };
    return (row) => {
      if (rows.hasCustomId(row)) return pattern.matches(rows.idOf(row, fold)) !== negated;
      const suffix = rows.suffixOf(row);
      const positions = positionsOf(row);
      return pattern.isEnd(suffix === '' ? positions : pattern.after(positions, fold(suffix))) !== negated;
    };
  };
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
