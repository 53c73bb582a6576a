/** The tree of filters as CQL2 JSON: what `readCql2Json` reads back to the same tree. */
import type { Comparison, Filter, OpenPeriod } from '../filter/filter.js';

export function toCql2Json(filter: Filter): unknown {
  switch (filter.op) {
    case 'and':
    case 'or':
      return filter.args.length === 0
        ? filter.op === 'and'
        : { op: filter.op, args: filter.args.map(toCql2Json) };
    case 'not':
      return { op: 'not', args: [toCql2Json(filter.arg)] };
    case 'in':
      return filter.values.length > 0 && withProperty(filter.op, filter.property, filter.values);
    case 'like':
      return withProperty(filter.op, filter.property, filter.pattern);
    case 'isNull':
      return { op: 'isNull', args: [{ property: filter.property }] };
  }
  if ('shape' in filter) return withProperty(filter.op, 'geometry', filter.shape);
  if ('value' in filter) return withProperty(filter.op, filter.property, filter.value);
  if (!isComparison(filter)) return withProperty(filter.op, filter.property, periodJson(filter.period));
  return withProperty(filter.op, filter.property, instantJson(filter.period));
}

const withProperty = (op: string, property: string, value: unknown) => ({
  op,
  args: [{ property }, value],
});

const isComparison = (filter: Filter): filter is Comparison => /^[<=>]/.test(filter.op);

const iso = (time: number) => new Date(time).toISOString();

function instantJson([start, end]: [number, number]): unknown {
  return start === end ? { timestamp: iso(start) } : { date: iso(start).slice(0, 10) };
}

function periodJson([start, end]: OpenPeriod): unknown {
  if (start !== null && start === end) return { timestamp: iso(start) };
  return { interval: [start, end].map((time) => (time === null ? '..' : iso(time))) };
}
