/** Conditions made into tests of rows, with the bounds that they give. */
import { type Bbox, cellBbox, type Grid, grids } from '../../geocode/index.js';
import { type ColumnIndex, mergeRanges } from '../../storage/index.js';
import { type Cover, coverShape, keyOf, keysBelow } from '../geometry/cover-shape.js';
import { Outline } from '../geometry/outline.js';
import { spatialRelations } from '../geometry/spatial.js';
import { cellTest } from './cell-test.js';
import type {
  Comparison,
  ComparisonOp,
  Condition,
  IsNull,
  Like,
  Membership,
  Spatial,
  Temporal,
} from './filter.js';
import { likeMatcher, likePrefix } from './like.js';
import { never, type Plan, type RowTest } from './plan.js';
import type { NumberProperty, TextProperty, TimeProperty } from './properties.js';
import { hullOf, type Period, temporalRelations } from './temporal.js';

/** The rows for which a condition is true, or, `negated`, false. */
export function compileCondition(index: ColumnIndex, condition: Condition, negated: boolean): Plan {
  if ('shape' in condition) return spatial(index, condition, negated);
  switch (condition.op) {
    case 'isNull':
      return isNull(index, condition, negated);
    case 'in':
      return membership(index, condition, negated);
    case 'like':
      return like(index, condition, negated);
  }
  if ('value' in condition) return comparison(index, condition);
  return isTemporal(condition) ? temporal(index, condition, negated) : timeComparison(index, condition);
}

const isTemporal = (condition: { op: string }): condition is Temporal => condition.op.startsWith('t_');

// Text

const textComparisons: Record<ComparisonOp, (text: string, value: string) => boolean> = {
  '=': (text, value) => text === value,
  '<>': (text, value) => text !== value,
  '<': (text, value) => text < value,
  '<=': (text, value) => text <= value,
  '>': (text, value) => text > value,
  '>=': (text, value) => text >= value,
};

type ValueComparison = Extract<Comparison, { value: unknown }>;

function comparison(index: ColumnIndex, { op, property, value }: ValueComparison): Plan {
  if (typeof value === 'number') return numberComparison(index, property as NumberProperty, op, value);
  const name = property as TextProperty;
  if (op === '=') return texts(index, name, [value], false);
  const compare = textComparisons[op];
  return { test: textTest(index, name, (text) => compare(text, value)) };
}

function membership(index: ColumnIndex, { property, values }: Membership, negated: boolean): Plan {
  if (property !== 'eo:cloud_cover' && property !== 'pixel_coverage')
    return texts(index, property, values as string[], negated);
  const column = numberColumn(index, property);
  const wanted = new Set((values as number[]).map(Math.fround));
  return { test: (row) => !Number.isNaN(column[row]) && wanted.has(column[row]) !== negated };
}

/** One of some texts, or, `negated`, none of them. */
function texts(index: ColumnIndex, property: TextProperty, values: string[], negated: boolean): Plan {
  const wanted = new Set(values);
  if (property === 'geocode' && !negated && wanted.size === 1) return cellsOf(index, values[0]!, 'itself');
  const test = textTest(index, property, (text) => wanted.has(text) !== negated);
  if (negated) return { test };
  if (property === 'id') return { test, ids: wanted };
  const geocodes =
    property === 'grid:code' ? values.map(geocodeIn) : property === 'geocode' ? values : undefined;
  const ranges = geocodes?.flatMap((geocode) =>
    grids.filter((grid) => grid.accepts(geocode)).map((grid) => keyOf(grid, geocode)),
  );
  return { test, ranges };
}

function like(index: ColumnIndex, { property, pattern }: Like, negated: boolean): Plan {
  const { prefix, isAll } = likePrefix(pattern);
  if (property === 'geocode' && isAll && prefix !== '' && !negated) return cellsOf(index, prefix, 'below');
  const matches = likeMatcher(pattern);
  return { test: textTest(index, property, (text) => matches(text) !== negated) };
}

/** A text of a row is known and passes. */
function textTest(index: ColumnIndex, property: TextProperty, passes: (text: string) => boolean): RowTest {
  const { columns } = index;
  switch (property) {
    case 'id':
      return (row) => passes(index.idOf(row));
    case 'geocode':
      return cellTest(index, (_, geocode) => passes(geocode));
    case 'grid:code':
      return cellTest(index, (grid, geocode) => passes(gridCode(grid, geocode)));
    case 'collection':
      return nameTest(columns.collection, index.collections.names, passes);
    case 'platform':
      return nameTest(columns.platform, index.platforms.names, passes);
    case 'source':
      return nameTest(columns.source, index.sources.names, passes);
    case 'scene':
      return nameTest(columns.scene, index.scenes.names, passes);
  }
}

/** Each name is tested once, when it is first met. */
function nameTest(
  codes: ArrayLike<number>,
  names: readonly (string | null)[],
  passes: (text: string) => boolean,
): RowTest {
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

// Cells

/** As in Items: `GEOHASH-9q8yy`. */
const gridCode = (grid: Grid, geocode: string) => `${grid.name.toUpperCase()}-${geocode}`;

const geocodeIn = (code: string) => code.slice(code.indexOf('-') + 1);

/** The cell of a geocode in every grid that has it, or with those below. */
function cellsOf(index: ColumnIndex, geocode: string, which: 'itself' | 'below'): Plan {
  const { grid, key, precision } = index.columns;
  const { length } = geocode;
  const found = grids.flatMap((one, code) => {
    if (!one.accepts(geocode)) return [];
    const range = which === 'below' ? keysBelow(one, geocode) : keyOf(one, geocode);
    return [{ code, range }];
  });
  const tests = found.map(
    ({ code, range: { from, to } }): RowTest =>
      (row) =>
        key[row] >= from &&
        key[row] < to &&
        grid[row] === code &&
        (which === 'below' ? precision[row] >= length : precision[row] === length),
  );
  const [first, second] = tests;
  if (!first) return never;
  return {
    test: second ? (row) => first(row) || second(row) : first,
    ranges: found.map(({ range }) => range),
  };
}

const WORLD: Bbox = [-180, -90, 180, 90];

function spatial(index: ColumnIndex, { op, shape }: Spatial, negated: boolean): Plan {
  const outline = new Outline(shape);
  const relation = spatialRelations[op];
  const test = (inside: Cover['inside']) =>
    cellTest(
      index,
      (grid, geocode) => relation(cellBbox(grid, geocode), outline) !== negated,
      mergeRanges(inside),
    );
  if (negated || op === 's_disjoint') return { test: test([]) };
  if (op === 's_intersects' && outline.covers(WORLD)) return {};
  const { inside, edge } = coverShape(outline);
  // Every other relation needs a point in common too.
  return { test: test(op === 's_intersects' ? inside : []), ranges: [...inside, ...edge] };
}

// Numbers

/** Percentages are kept as float32, so bounds are compared as such. NaN stands for the unknown. */
function numberColumn({ columns }: ColumnIndex, property: NumberProperty): Float32Array {
  return property === 'eo:cloud_cover' ? columns.cloud : columns.coverage;
}

function numberComparison(
  index: ColumnIndex,
  property: NumberProperty,
  op: ComparisonOp,
  value: number,
): Plan {
  const column = numberColumn(index, property);
  const bound = Math.fround(value);
  const tests: Record<ComparisonOp, RowTest> = {
    '=': (row) => column[row] === bound,
    '<>': (row) => column[row] < bound || column[row] > bound,
    '<': (row) => column[row] < bound,
    '<=': (row) => column[row] <= bound,
    '>': (row) => column[row] > bound,
    '>=': (row) => column[row] >= bound,
  };
  return { test: tests[op] };
}

// Times

/** Whether a period is written into the Item as such. */
function hasPeriod({ columns: { start, end } }: ColumnIndex): RowTest {
  return (row) => start[row] !== end[row];
}

/** First and last column of a property, and where it is known. `datetime` is the whole time. */
function timeColumns(index: ColumnIndex, property: TimeProperty) {
  const { start, end, created } = index.columns;
  switch (property) {
    case 'datetime':
      return { first: start, last: end };
    case 'start_datetime':
      return { first: start, last: start, known: hasPeriod(index) };
    case 'end_datetime':
      return { first: end, last: end, known: hasPeriod(index) };
    case 'created':
      return { first: created, last: created };
  }
}

function withKnown(test: RowTest, known: RowTest | undefined): RowTest {
  return known ? (row) => known(row) && test(row) : test;
}

function temporal(index: ColumnIndex, { op, property, period }: Temporal, negated: boolean): Plan {
  const { first, last, known } = timeColumns(index, property);
  const start = period[0] ?? -Infinity;
  const end = period[1] ?? Infinity;
  const relation = temporalRelations[op];
  const test: RowTest =
    op === 't_intersects'
      ? (row) => (first[row] <= end && last[row] >= start) !== negated
      : (row) => relation(first[row], last[row], start, end) !== negated;
  const hull = negated || property === 'created' ? undefined : hullOf(op, [start, end]);
  const isTime = op === 't_intersects' && property === 'datetime' && !negated;
  return { test: withKnown(test, known), time: hull && rangeOf(hull), isTime };
}

type TimeComparison = Extract<Comparison, { period: unknown }>;

function timeComparison(index: ColumnIndex, { op, property, period }: TimeComparison): Plan {
  const { first: column, known } = timeColumns(index, property);
  const [start, end] = period;
  const tests: Record<ComparisonOp, RowTest> = {
    '=': (row) => column[row] >= start && column[row] <= end,
    '<>': (row) => column[row] < start || column[row] > end,
    '<': (row) => column[row] < start,
    '<=': (row) => column[row] <= end,
    '>': (row) => column[row] > end,
    '>=': (row) => column[row] >= start,
  };
  const hulls: Record<ComparisonOp, Period> = {
    '=': [start, end],
    '<>': [-Infinity, Infinity],
    '<': [-Infinity, start],
    '<=': [-Infinity, end],
    '>': [end, Infinity],
    '>=': [start, Infinity],
  };
  const time = property === 'created' ? undefined : rangeOf(hulls[op]);
  return { test: withKnown(tests[op], known), time };
}

const rangeOf = ([start, end]: Period) => ({ start, end });

// Null

function isNull(index: ColumnIndex, { property }: IsNull, negated: boolean): Plan {
  const test = nullTest(index, property);
  if (!test) return negated ? {} : never;
  return { test: (row) => test(row) !== negated };
}

/** Undefined for properties that every Item has. */
function nullTest(index: ColumnIndex, property: IsNull['property']): RowTest | undefined {
  const { cloud, platform } = index.columns;
  if (property === 'eo:cloud_cover') return (row) => Number.isNaN(cloud[row]);
  if (property === 'platform') return (row) => index.platforms.names[platform[row]] === null;
  if (property !== 'start_datetime' && property !== 'end_datetime') return undefined;
  const known = hasPeriod(index);
  return (row) => !known(row);
}
