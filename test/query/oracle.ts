/** Evaluates a filter on a record: searches must return the same as a scan of all records. */
import { type Bbox, cellBbox, gridByName } from '../../src/grid/index.js';
import type {
  NumberExpression,
  PeriodExpression,
  TextExpression,
  TimeExpression,
} from '../../src/query/filter.js';
import type { Filter } from '../../src/query/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { relates } from './spatial-oracle.js';

/** As in SQL: null is unknown. */
type Truth = boolean | null;

/** The properties of a tile's Item; null if it has none. Percentages are float32, as in the index. */
function propertiesOf(tile: TileRecord): Record<string, string | number | null> {
  const isPeriod = tile.start !== tile.end;
  const spectra = tile.groups.filter(({ bands }) => bands.length >= 16);
  const wavelengths = spectra.flatMap(({ bands }) =>
    bands.filter(({ good }) => good !== false).map(({ wavelength }) => wavelength!),
  );
  return {
    id: tile.id,
    collection: tile.collection,
    datetime: tile.start,
    start_datetime: isPeriod ? tile.start : null,
    end_datetime: isPeriod ? tile.end : null,
    created: tile.createdAt,
    'eo:cloud_cover': tile.cloudCover === null ? null : Math.fround(tile.cloudCover),
    pixel_coverage: Math.fround(tile.coverage),
    'hsi:wavelength_min': wavelengths.length > 0 ? Math.min(...wavelengths) / 1000 : null,
    'hsi:wavelength_max': wavelengths.length > 0 ? Math.max(...wavelengths) / 1000 : null,
    platform: tile.platform,
    source: tile.source,
    geocode: tile.geocode,
    'grid:code': `${tile.grid.toUpperCase()}-${tile.geocode}`,
    scene: tile.scene,
  };
}

/** The cell of a tile, or the parts of it that hold data: 8 rows of 8, one binary digit for each. */
export function areaOf({ grid: name, geocode, dataParts }: TileRecord): Bbox | Bbox[] {
  const grid = gridByName(name);
  if (dataParts === undefined) return cellBbox(grid, geocode);
  const { west, south, east, north } = grid.bounds(geocode);
  const x = (i: number) => (i === 8 ? east : west + ((east - west) * i) / 8);
  const y = (i: number) => (i === 8 ? south : north + ((south - north) * i) / 8);
  const digits = BigInt(`0x${dataParts}`).toString(2).padStart(64, '0');
  return Array.from(digits).flatMap((digit, i): Bbox[] => {
    const [column, row] = [i % 8, Math.floor(i / 8)];
    const corners = [grid.toLonLat(x(column), y(row + 1)), grid.toLonLat(x(column + 1), y(row))];
    return digit === '1' ? [corners.flat() as Bbox] : [];
  });
}

/** True if a tile matches a filter. */
export function matches(filter: Filter, tile: TileRecord): boolean {
  return truthOf(filter, tile) === true;
}

function truthOf(filter: Filter, tile: TileRecord): Truth {
  switch (filter.op) {
    case 'and': {
      const truths = filter.args.map((arg) => truthOf(arg, tile));
      return truths.includes(false) ? false : truths.includes(null) ? null : true;
    }
    case 'or': {
      const truths = filter.args.map((arg) => truthOf(arg, tile));
      return truths.includes(true) ? true : truths.includes(null) ? null : false;
    }
    case 'not': {
      const truth = truthOf(filter.arg, tile);
      return truth === null ? null : !truth;
    }
  }
  if (filter.op === 'isUnknown') return truthOf(filter.arg, tile) === null;
  if (filter.op === 'compare') {
    const [a, b] = filter.args.map((arg) => givenBy(arg, tile));
    return a === null || b === null ? null : compared(filter.sign, a!, b!, b!);
  }
  if (filter.op === 'match') {
    const text = givenBy(filter.text, tile);
    return text === null ? null : regexOf(filter.pattern).test(String(text));
  }
  if (filter.op === 'periods') {
    const [a, b] = filter.args.map((arg) => periodOf(arg, tile));
    return a && b ? allen(filter.relation, ...a, ...b) : null;
  }
  if ('shape' in filter) return relates(filter.op, areaOf(tile), filter.shape);
  const value = filter.property === 'geometry' ? 0 : propertiesOf(tile)[filter.property]!;
  if (filter.op === 'isNull') return value === null;
  if (value === null) return null;
  if (filter.op === 'in' && 'periods' in filter)
    return filter.periods.some(([start, end]) => compared('=', value, start, end));
  if (filter.op === 'in') return filter.values.some((one) => stored(filter.property, one) === value);
  if (filter.op === 'like') return regexOf(filter.pattern).test(String(value));
  if ('value' in filter) {
    const bound = stored(filter.property, filter.value);
    return compared(filter.op, value, bound, bound);
  }
  const from = filter.period[0] ?? -Infinity;
  const to = filter.period[1] ?? Infinity;
  if (!filter.op.startsWith('t_')) return compared(filter.op, value, from, to);
  const end = filter.property === 'datetime' ? tile.end : Number(value);
  return allen(filter.op, Number(value), end, from, to);
}

/** Null if unknown. A percentage is the decimal with four digits that has this float32, if there is one. */
function givenBy(
  expression: TextExpression | NumberExpression | TimeExpression,
  tile: TileRecord,
): string | number | null {
  if (typeof expression !== 'object') return expression;
  if ('property' in expression) {
    const value = propertiesOf(tile)[expression.property]!;
    if (expression.property !== 'eo:cloud_cover' && expression.property !== 'pixel_coverage') return value;
    if (value === null) return null;
    const decimal = Number(Number(value).toFixed(4));
    return Math.fround(decimal) === value ? decimal : value;
  }
  if ('arg' in expression) {
    const text = givenBy(expression.arg, tile);
    return text === null ? null : folded(expression.op, String(text));
  }
  const [a, b] = expression.args.map((arg) => givenBy(arg, tile));
  if (a === null || b === null) return null;
  const result = calculated(expression.op, Number(a), Number(b));
  return Number.isFinite(result) ? result : null;
}

function calculated(op: string, a: number, b: number): number {
  if (op === 'div') return a / b < 0 ? Math.ceil(a / b) : Math.floor(a / b);
  if (op === '+') return a + b;
  if (op === '-') return a - b;
  if (op === '*') return a * b;
  if (op === '/') return a / b;
  return op === '%' ? a % b : a ** b;
}

/** For the letters in the texts of these tests. */
function folded(op: string, text: string): string {
  if (op === 'casei') return text.toUpperCase().toLowerCase();
  const plain: Record<string, string> = { Ø: 'O', ø: 'o' };
  return text.replace(/[Øø]/g, (letter) => plain[letter]!);
}

/** Undefined if unknown, or if it ends before it starts. */
function periodOf(period: PeriodExpression, tile: TileRecord): [number, number] | undefined {
  const ends = 'interval' in period ? period.interval : [period, period];
  const values = ends.map((end, i) => {
    if (end === null) return i === 0 ? -Infinity : Infinity;
    if (typeof end === 'number') return end;
    if (end.property === 'datetime') return i === 0 ? tile.start : tile.end;
    return propertiesOf(tile)[end.property] as number | null;
  });
  const [start, end] = values;
  return start === null || end === null || start! > end! ? undefined : [start!, end!];
}

/** A percentage as in the index; other values are unchanged. */
function stored(property: string, value: string | number): string | number {
  return typeof value === 'number' && !property.startsWith('hsi:') ? Math.fround(value) : value;
}

/** Compares with a bound that may be a period. */
function compared<T extends string | number>(op: string, value: T, from: T, to: T): boolean {
  const [before, after] = [value < from, value > to];
  if (op === '=') return !before && !after;
  if (op === '<>') return before || after;
  if (op === '<') return before;
  if (op === '<=') return !after;
  return op === '>' ? after : !before;
}

function regexOf(pattern: string): RegExp {
  const source = pattern.replace(/\\(.)|./gs, (part, escaped) => {
    if (escaped === undefined && part === '%') return '.*';
    if (escaped === undefined && part === '_') return '.';
    return (escaped ?? part).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${source}$`, 's');
}

/** Decides by the signs of the four differences of ends, as in Allen's diagrams. */
export function allen(op: string, a: number, aEnd: number, b: number, bEnd: number): boolean {
  const starts = Math.sign(a - b) || 0;
  const ends = Math.sign(aEnd - bEnd) || 0;
  const apart = aEnd < b ? -1 : a > bEnd ? 1 : 0;
  const is = (s: number, e: number) => starts === s && ends === e;
  switch (op) {
    case 't_before':
      return apart < 0;
    case 't_after':
      return apart > 0;
    case 't_disjoint':
      return apart !== 0;
    case 't_intersects':
      return apart === 0;
    case 't_equals':
      return is(0, 0);
    case 't_contains':
      return is(-1, 1);
    case 't_during':
      return is(1, -1);
    case 't_finishedBy':
      return is(-1, 0);
    case 't_finishes':
      return is(1, 0);
    case 't_startedBy':
      return is(0, 1);
    case 't_starts':
      return is(0, -1);
    case 't_meets':
      return aEnd === b;
    case 't_metBy':
      return a === bEnd;
    case 't_overlaps':
      return is(-1, -1) && apart === 0 && aEnd !== b;
    case 't_overlappedBy':
      return is(1, 1) && apart === 0 && a !== bEnd;
    default:
      throw new Error(`no relation ${op}`);
  }
}
