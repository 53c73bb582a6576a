/** Filters made into what the index runs. */
import { compileCondition } from './compile-condition.js';
import type { ComparisonOp, Condition, Filter } from './filter.js';
import { conjunction, disjunction, never, type Plan } from './plan.js';

/**
 * The plan of a filter, for any index.
 *
 * Conditions have three values in SQL and CQL2: true, false, unknown. A search wants those that are true. So NOT is moved
 * down to the conditions first, by De Morgan's laws, which hold for three values too; then each condition is asked whether
 * it is true, or, under NOT, whether it is false, and the unknown is neither.
 */
export function compileFilter(filter: Filter, negated = false): Plan {
  if (filter.op === 'not') return compileFilter(filter.arg, !negated);
  if (filter.op === 'and' || filter.op === 'or') {
    const plans = filter.args.map((arg) => compileFilter(arg, negated));
    const isAnd = (filter.op === 'and') !== negated;
    if (plans.length === 0) return isAnd ? {} : never;
    return isAnd ? conjunction(plans) : disjunction(plans);
  }
  return negated ? compileNegated(filter) : compileCondition(filter, false);
}

const OPPOSITE: Record<ComparisonOp, ComparisonOp> = {
  '=': '<>',
  '<>': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

/** Where a condition has an opposite, that one has bounds of its own. Both are unknown for the same Items. */
function compileNegated(condition: Condition): Plan {
  const { op } = condition;
  if (op in OPPOSITE) {
    const opposite = { ...condition, op: OPPOSITE[op as ComparisonOp] } as Condition;
    return compileCondition(opposite, false);
  }
  if (op === 't_disjoint') return compileCondition({ ...condition, op: 't_intersects' }, false);
  if (op === 's_disjoint') return compileCondition({ ...condition, op: 's_intersects' }, false);
  return compileCondition(condition, true);
}
