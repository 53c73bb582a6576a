/** Values in CQL2 JSON, checked against what they are compared with. */
import { badCql2, unsupportedCql2 } from '../errors.js';
import type { OpenPeriod } from '../filter/filter.js';
import { readGeometry, type Shape } from '../geometry/shape.js';
import { checkBbox } from '../parse-bbox.js';
import { parseDatetime } from '../parse-datetime.js';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOf(literal: unknown, property: string, where: string): string {
  if (typeof literal === 'string') return literal;
  throw mismatch(literal, property, 'a text', where);
}

export function numberOf(literal: unknown, property: string, where: string): number {
  if (typeof literal === 'number' && Number.isFinite(literal)) return literal;
  throw mismatch(literal, property, 'a number', where);
}

/** First and last millisecond of an instant or a day. */
export function instantOf(literal: unknown, property: string, where: string): [start: number, end: number] {
  const { start, end } = rangeOf(literal, property, where);
  if (start === undefined || end === undefined || (isObject(literal) && 'interval' in literal))
    throw mismatch(literal, property, 'a time', where);
  return [start, end];
}

/** Of an instant, a day or an interval. */
export function periodOf(literal: unknown, property: string, where: string): OpenPeriod {
  const { start = null, end = null } = rangeOf(literal, property, where);
  return [start, end];
}

function rangeOf(literal: unknown, property: string, where: string): { start?: number; end?: number } {
  if (typeof literal === 'string' && !literal.includes('/')) return parseDatetime(literal, { dates: 'days' });
  if (isObject(literal)) {
    const { timestamp, date, interval } = literal;
    if (typeof timestamp === 'string' && !timestamp.includes('/')) return parseDatetime(timestamp);
    if (typeof date === 'string' && /^[\d-]+$/.test(date)) return parseDatetime(date, { dates: 'days' });
    if (Array.isArray(interval) && interval.length === 2) return intervalOf(interval, property, where);
  }
  throw mismatch(literal, property, "a time such as TIMESTAMP('2024-06-01T00:00:00Z')", where);
}

function intervalOf(ends: unknown[], property: string, where: string): { start?: number; end?: number } {
  if (ends.some(isObject)) throw unsupportedCql2(where, 'an interval of properties');
  if (ends.every((end) => end === '..')) return {};
  if (ends.every((end) => typeof end === 'string' && end !== '' && !end.includes('/')))
    return parseDatetime(ends.join('/'), { dates: 'days' });
  throw mismatch(ends, property, 'an interval of two times', where);
}

/** GeoJSON, or `{"bbox": [...]}`. */
export function shapeOf(literal: unknown, where: string): Shape {
  if (!isObject(literal)) throw badCql2(where, 'a spatial function takes a property and a geometry');
  if ('type' in literal) return readGeometry(literal);
  const { bbox } = literal;
  if (!Array.isArray(bbox) || !bbox.every((number) => typeof number === 'number'))
    throw badCql2(where, 'a geometry is GeoJSON or {"bbox": [west, south, east, north]}');
  return { bbox: checkBbox(bbox) };
}

function mismatch(literal: unknown, property: string, wanted: string, where: string) {
  if (isObject(literal) && typeof literal['op'] === 'string')
    return unsupportedCql2(where, `the function "${literal['op']}"`);
  const text = JSON.stringify(literal) ?? 'nothing';
  const given = text.length > 60 ? `${text.slice(0, 60)}...` : text;
  return badCql2(where, `${property} is compared with ${wanted}, not with ${given}`);
}
