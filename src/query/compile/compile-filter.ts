/** Compiles filters to query plans. */
import type { ComparisonOp, Condition, Filter, IsUnknown } from '../filter/index.js';
import { compileCondition } from './compile-condition.js';
import { conjunction, disjunction, EMPTY_PLAN, type QueryPlan } from './compiled-query-plan.js';

/**
 * The plan of a filter, for any index.
 *
 * Conditions have three values in SQL and CQL2: true, false, unknown. A search returns tiles for which the filter is true. So NOT is
 * first moved down to the conditions, by De Morgan's laws, which also hold for three values. Then each condition is compiled to a
 * test for true, or for false under NOT. Unknown values satisfy neither.
 */
export function compileFilter(filter: Filter, negated = false): QueryPlan {
  if (filter.op === 'not') return compileFilter(filter.arg, !negated);
  if (filter.op === 'and' || filter.op === 'or') {
    const plans = filter.args.map((arg) => compileFilter(arg, negated));
    const isAnd = (filter.op === 'and') !== negated;
    if (plans.length === 0) return isAnd ? {} : EMPTY_PLAN;
    return isAnd ? conjunction(plans) : disjunction(plans);
  }
  if (filter.op === 'isUnknown') return isUnknown(filter, negated);
  return negated ? compileNegated(filter) : compileCondition(filter, false);
}

/** A filter is known if it or its negation is true. */
function isUnknown({ arg }: IsUnknown, negated: boolean): QueryPlan {
  const known = disjunction([compileFilter(arg), compileFilter(arg, true)]);
  if (negated) return known;
  const { test } = known;
  if (!test) return EMPTY_PLAN;
  return {
    test: (rows) => {
      const isKnown = test(rows);
      return (row) => !isKnown(row);
    },
  };
}

const NEGATED_OPERATORS: Record<ComparisonOp, ComparisonOp> = {
  '=': '<>',
  '<>': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

/** Compiles the opposite condition if there is one, because it has bounds. Both are unknown for the same Items. */
function compileNegated(condition: Condition): QueryPlan {
  const { op } = condition;
  if (op === 'compare')
    return compileCondition({ ...condition, sign: NEGATED_OPERATORS[condition.sign] }, false);
  if (op in NEGATED_OPERATORS) {
    const opposite = { ...condition, op: NEGATED_OPERATORS[op as ComparisonOp] } as Condition;
    return compileCondition(opposite, false);
  }
  if (op === 't_disjoint') return compileCondition({ ...condition, op: 't_intersects' }, false);
  if (op === 's_disjoint') return compileCondition({ ...condition, op: 's_intersects' }, false);
  return compileCondition(condition, true);
}
