/** Writes filters as CQL2 text, independently of the reader. */

import type { NumberExpression, PeriodEnd, TextExpression } from '../../src/query/filter.js';
import type { Geometry, Shape } from '../../src/query/geometry.js';
import type { Filter } from '../../src/query/index.js';

type Expression = TextExpression | NumberExpression | PeriodEnd;

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
const iso = (time: number | null) => (time === null ? '..' : new Date(time).toISOString());

/** With `lower`, keywords are in lower case. */
export function printCql2(filter: Filter, lower: boolean): string {
  const word = (text: string) => (lower ? text.toLowerCase() : text.toUpperCase());
  const instant = ([start, end]: [number | null, number | null]) =>
    start === end
      ? `${word('timestamp')}(${quoted(iso(start))})`
      : `${word('date')}('${iso(start).slice(0, 10)}')`;
  const print = (one: Filter) => printCql2(one, lower);
  switch (filter.op) {
    case 'and':
    case 'or': {
      if (filter.args.length === 0) return word(filter.op === 'and' ? 'true' : 'false');
      return `(${filter.args.map(print).join(` ${word(filter.op)} `)})`;
    }
    case 'not':
      return `${word('not')} ${print(filter.arg)}`;
    case 'isNull':
      return `${filter.property} ${word('is null')}`;
    case 'like':
      return `"${filter.property}" ${word('like')} ${quoted(filter.pattern)}`;
    case 'in': {
      if ('periods' in filter)
        return `${filter.property} ${word('in')}(${filter.periods.map(instant).join(',')})`;
      if (filter.values.length === 0) return word('false');
      const values = filter.values.map((value) => (typeof value === 'number' ? `${value}` : quoted(value)));
      return `${filter.property} ${word('in')}(${values.join(',')})`;
    }
  }
  const value = (expression: Expression): string => {
    if (expression === null) return "'..'";
    if (typeof expression === 'number') return `${expression}`;
    if (typeof expression === 'string') return quoted(expression);
    if ('property' in expression) return `"${expression.property}"`;
    if ('arg' in expression) return `${word(expression.op)}(${value(expression.arg)})`;
    return `(${value(expression.args[0])} ${word(expression.op)} ${value(expression.args[1])})`;
  };
  const endText = (one: PeriodEnd) => (typeof one === 'number' ? quoted(iso(one)) : value(one));
  switch (filter.op) {
    case 'isUnknown':
      return `(${print(filter.arg)}) ${word('is null')}`;
    case 'match':
      return `${value(filter.text)} ${word('like')} ${quoted(filter.pattern)}`;
    case 'compare':
      return `${value(filter.args[0])} ${filter.sign} ${value(filter.args[1])}`;
    case 'periods': {
      const args = filter.args.map((one) =>
        'interval' in one ? `${word('interval')}(${one.interval.map(endText).join(', ')})` : value(one),
      );
      return `${word(filter.relation)}(${args.join(', ')})`;
    }
  }
  if ('shape' in filter) return `${word(filter.op)}(geometry, ${printShape(filter.shape, word)})`;
  if ('value' in filter) {
    const { value } = filter;
    return `${filter.property}${filter.op}${typeof value === 'number' ? value : quoted(value)}`;
  }
  const [start, end] = filter.period;
  if (filter.op.startsWith('t_')) {
    const interval = `${word('interval')}(${quoted(iso(start))}, ${quoted(iso(end))})`;
    return `${word(filter.op)}(${filter.property}, ${interval})`;
  }
  return `${filter.property} ${filter.op} ${instant([start, end])}`;
}

function printShape(shape: Shape, word: (text: string) => string): string {
  if ('bbox' in shape) return `${word('bbox')}(${shape.bbox.join(', ')})`;
  return printGeometry(shape, word);
}

function printGeometry(geometry: Geometry, word: (text: string) => string): string {
  if (geometry.type === 'GeometryCollection') {
    const parts = geometry.geometries.map((one) => printGeometry(one, word));
    return `${word('GEOMETRYCOLLECTION')}(${parts.join(',')})`;
  }
  const body = printCoordinates(geometry.coordinates);
  return `${word(geometry.type)}${geometry.type === 'Point' ? `(${body})` : body}`;
}

function printCoordinates(coordinates: unknown): string {
  const list = coordinates as unknown[];
  if (typeof list[0] === 'number') return list.join(' ');
  return `(${list.map(printCoordinates).join(', ')})`;
}
