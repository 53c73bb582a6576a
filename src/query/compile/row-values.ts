/** The values of properties in the rows of the index, and tests of them. */
import { type Grid, grids } from '../../grid/index.js';
import { type IndexRun, type RowFilter, type RunFilter, rangeNamed } from '../../storage/index.js';
import {
  type NumberProperty,
  type PropertyName,
  propertyKind,
  type TextProperty,
  type TimeProperty,
  type WavelengthProperty,
} from '../filter/properties.js';
import { cellPredicate } from './cell-predicate.js';

/** A value of each row. */
export type RowValue<T> = (row: number) => T;

// Texts

/** A text of a row is known and passes. */
export function textTest(property: TextProperty, passes: (text: string) => boolean): RunFilter {
  switch (property) {
    case 'id':
      return (rows) => (row) => passes(rows.idOf(row));
    case 'geocode':
      return cellPredicate((_, geocode) => passes(geocode));
    case 'grid:code':
      return cellPredicate((grid, geocode) => passes(formatGridCode(grid, geocode)));
    case 'collection':
      return ({ columns, collections }) => nameTest(columns.collection, collections.names, passes);
    case 'platform':
      return ({ columns, platforms }) => nameTest(columns.platform, platforms.names, passes);
    case 'source':
      return ({ columns, sources }) => nameTest(columns.source, sources.names, passes);
    case 'scene':
      return ({ columns, scenes }) => nameTest(columns.scene, scenes.names, passes);
  }
}

/** Each name is tested once, when it is first met. */
export function nameTest(
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

/** As in Items: `GEOHASH-9q8yy`. */
export const formatGridCode = (grid: Grid, geocode: string) => `${grid.name.toUpperCase()}-${geocode}`;

/** The text of a row; null where it has none. */
export function textOfRow(rows: IndexRun, property: TextProperty): RowValue<string | null> {
  const { columns } = rows;
  const named =
    (codes: ArrayLike<number>, { names }: { names: readonly (string | null)[] }): RowValue<string | null> =>
    (row) =>
      names[codes[row]!]!;
  const geocodeOf = (row: number) =>
    grids[columns.grid[row]].geocode(columns.key[row], columns.precision[row]);
  switch (property) {
    case 'id':
      return (row) => rows.idOf(row);
    case 'geocode':
      return geocodeOf;
    case 'grid:code':
      return (row) => formatGridCode(grids[columns.grid[row]], geocodeOf(row));
    case 'collection':
      return named(columns.collection, rows.collections);
    case 'platform':
      return named(columns.platform, rows.platforms);
    case 'source':
      return named(columns.source, rows.sources);
    case 'scene':
      return named(columns.scene, rows.scenes);
  }
}

// Numbers

export const isNumber = (property: PropertyName): property is NumberProperty =>
  propertyKind(property) === 'number';
export const isWavelength = (property: NumberProperty): property is WavelengthProperty =>
  property.startsWith('hsi:');

/** The row has a spectrum, and an end of its range passes. Ranges are names, so that each is tested once. */
export function wavelengthTest(
  property: WavelengthProperty,
  passes: (micrometres: number) => boolean,
): RunFilter {
  const end = property === 'hsi:wavelength_min' ? 'min' : 'max';
  return ({ columns, wavelengthRanges }) =>
    nameTest(columns.wavelengths, wavelengthRanges.names, (name) => passes(rangeNamed(name)[end]));
}

/** Percentages are kept as float32, so bounds are compared as such. NaN stands for the unknown. */
export function numberColumn(
  { columns }: IndexRun,
  property: Exclude<NumberProperty, WavelengthProperty>,
): Float32Array {
  return property === 'eo:cloud_cover' ? columns.cloud : columns.coverage;
}

/**
 * The number of a row, NaN for the unknown. A percentage is the shortest decimal that its float32 stands for, as far as that has at
 * most four digits behind the point: 20.1, and not 20.100000381.
 */
export function numberOfRow(rows: IndexRun, property: NumberProperty): RowValue<number> {
  if (!isWavelength(property)) {
    const column = numberColumn(rows, property);
    return (row) => {
      const single = column[row]!;
      const decimal = Math.round(single * 1e4) / 1e4;
      return Math.fround(decimal) === single ? decimal : single;
    };
  }
  const { columns, wavelengthRanges } = rows;
  const end = property === 'hsi:wavelength_min' ? 'min' : 'max';
  const known = new Map<number, number>();
  return (row) => {
    const code = columns.wavelengths[row]!;
    let value = known.get(code);
    if (value === undefined) {
      const name = wavelengthRanges.names[code]!;
      value = name === null ? Number.NaN : rangeNamed(name)[end];
      known.set(code, value);
    }
    return value;
  };
}

// Times

/** True for rows whose Item has a start and an end. */
export function hasTime({ columns: { start, end } }: IndexRun): RowFilter {
  return (row) => start[row] !== end[row];
}

/** First and last column of a property, and where it is known. `datetime` is the whole time. */
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
