/** Reads literals in CQL2 JSON, and checks their types against the other operand. */
import { badCql2 } from '../errors.js';
import type { OpenPeriod } from '../filter/index.js';
import { readGeometry, type Shape } from '../geometry/index.js';
import { checkBbox, parseDatetime } from '../values/index.js';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function readText(literal: unknown, property: string, where: string): string {
  if (typeof literal === 'string') return literal;
  throw typeMismatch(literal, property, 'a text', where);
}

export function readNumber(literal: unknown, property: string, where: string): number {
  if (typeof literal === 'number' && Number.isFinite(literal)) return literal;
  throw typeMismatch(literal, property, 'a number', where);
}

/** First and last millisecond of an instant or a day. */
export function readInstant(literal: unknown, property: string, where: string): [start: number, end: number] {
  const { start, end } = rangeOf(literal, property, where);
  if (start === undefined || end === undefined || (isObject(literal) && 'interval' in literal))
    throw typeMismatch(literal, property, 'a time', where);
  return [start, end];
}

/** The period of an instant, a day or an interval. */
export function readPeriod(literal: unknown, property: string, where: string): OpenPeriod {
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
  throw typeMismatch(literal, property, "a time such as TIMESTAMP('2024-06-01T00:00:00Z')", where);
}

function intervalOf(ends: unknown[], property: string, where: string): { start?: number; end?: number } {
  if (ends.every((end) => end === '..')) return {};
  if (ends.every((end) => typeof end === 'string' && end !== '' && !end.includes('/')))
    return parseDatetime(ends.join('/'), { dates: 'days' });
  throw typeMismatch(ends, property, 'an interval of two times', where);
}

/** Reads GeoJSON or `{"bbox": [...]}`. */
export function readShape(literal: unknown, where: string): Shape {
  if (!isObject(literal)) throw badCql2(where, 'a spatial function takes a property and a geometry');
  if ('type' in literal) return readGeometry(literal);
  const { bbox } = literal;
  if (!Array.isArray(bbox) || !bbox.every((number) => typeof number === 'number'))
    throw badCql2(where, 'a geometry is GeoJSON or {"bbox": [west, south, east, north]}');
  return { bbox: checkBbox(bbox) };
}

function typeMismatch(literal: unknown, property: string, wanted: string, where: string) {
  const hint = literal === null ? ': use IS NULL to find missing values' : '';
  return badCql2(
    where,
    `${property} is compared with ${wanted}, not with ${describeLiteral(literal)}${hint}`,
  );
}

/** Checks a literal operand of IS NULL: a text, a number, a truth value, a time or a geometry. */
export function checkValue(literal: unknown, where: string): void {
  if (isObject(literal)) {
    if ('type' in literal || 'bbox' in literal) readShape(literal, where);
    else rangeOf(literal, 'IS NULL', where);
  } else if (!['string', 'number', 'boolean'].includes(typeof literal))
    throw badCql2(where, `IS NULL takes a property, a value or a condition, not ${describeLiteral(literal)}`);
}

/** Describes a literal in a message. */
export function describeLiteral(literal: unknown): string {
  if (literal === Infinity || literal === -Infinity) return 'a number beyond 1.8e308';
  const text = JSON.stringify(literal) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}
