/** Checks the form of filters that other nodes send, which the compiler relies on. */
import { type Check, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { filterTooComplex } from '../errors.js';
import { readGeometry, spatialRelations } from '../geometry/index.js';
import { arithmeticOps } from './filter-arithmetic.js';
import { comparisons } from './filter-comparisons.js';
import { type PropertyKind, type PropertyName, propertyKind, queryables } from './filter-properties.js';
import { temporalRelations } from './filter-temporal-relations.js';
import { foldingFunctions } from './filter-text-folding.js';
import { type Condition, checkNesting, MAX_UNKNOWN_DEPTH, referencedProperties } from './filter-tree.js';

const NAMES = Object.keys(queryables) as PropertyName[];
const COMPARISONS = Object.keys(comparisons);

const named = (kind: PropertyKind) => ({ enum: NAMES.filter((name) => propertyKind(name) === kind) });
const period = (...type: string[]) => ({ type: 'array', minItems: 2, maxItems: 2, items: { type } });

const condition = (ops: string[], members: object) => objectOf({ op: { enum: ops }, ...members });

const property = (kind: PropertyKind) => objectOf({ property: named(kind) });
const pair = (items: object) => ({ type: 'array', minItems: 2, maxItems: 2, items });
const expression = (kind: string) => ({ $ref: `#/definitions/${kind}` });

const definitions = {
  text: {
    anyOf: [
      TEXT,
      property('text'),
      objectOf({ op: { enum: Object.keys(foldingFunctions) }, arg: expression('text') }),
    ],
  },
  number: {
    anyOf: [
      NUMBER,
      property('number'),
      objectOf({ op: { enum: arithmeticOps }, args: pair(expression('number')) }),
    ],
  },
  time: property('time'),
  period: {
    anyOf: [
      property('time'),
      objectOf({ interval: pair({ anyOf: [{ type: ['number', 'null'] }, property('time')] }) }),
    ],
  },
};

const compare = (kind: string) =>
  condition(['compare'], {
    kind: { enum: [kind] },
    sign: { enum: COMPARISONS },
    args: pair(expression(kind)),
  });

const checkCondition = messageCheck({
  definitions,
  anyOf: [
    condition(COMPARISONS, { property: named('text'), value: TEXT }),
    condition(COMPARISONS, { property: named('number'), value: NUMBER }),
    condition(COMPARISONS, { property: named('time'), period: period('number') }),
    condition(['in'], { property: named('text'), values: listOf(TEXT) }),
    condition(['in'], { property: named('number'), values: listOf(NUMBER) }),
    condition(['in'], { property: named('time'), periods: listOf(period('number')) }),
    condition(['like'], { property: named('text'), pattern: TEXT }),
    condition(['isNull'], { property: { enum: NAMES } }),
    condition(Object.keys(temporalRelations), { property: named('time'), period: period('number', 'null') }),
    condition(Object.keys(spatialRelations), { shape: { type: 'object' } }),
    compare('text'),
    compare('number'),
    compare('time'),
    condition(['match'], { text: expression('text'), pattern: TEXT }),
    condition(['periods'], {
      relation: { enum: Object.keys(temporalRelations) },
      args: pair(expression('period')),
    }),
  ],
});

const checkBox = messageCheck({ type: 'array', minItems: 4, maxItems: 4, items: NUMBER });

/** Throws TW_QUERY_TOO_COMPLEX and TW_QUERY_GEOMETRY. */
export const checkRemoteFilter: Check = (filter) => {
  checkNesting(filter);
  for (const pending: [unknown, levels: number][] = [[filter, 0]]; pending.length > 0; ) {
    const [one, levels] = pending.pop()!;
    const { op, arg, args, shape } = (one ?? {}) as Record<string, unknown>;
    if (op === 'isUnknown') {
      if (levels === MAX_UNKNOWN_DEPTH)
        throw filterTooComplex('levels of isUnknown', levels + 1, MAX_UNKNOWN_DEPTH);
      pending.push([arg, levels + 1]);
    } else if (op === 'not') pending.push([arg, levels]);
    else if ((op === 'and' || op === 'or') && Array.isArray(args))
      for (const part of args) pending.push([part, levels]);
    else {
      const fault =
        checkCondition(one) ?? (shape === undefined ? undefined : shapeFault(shape)) ?? constantFault(one);
      if (fault !== undefined) return `a condition of its filter: ${fault}`;
    }
  }
  return undefined;
};

/** Conditions on texts must contain a property, because it determines the test. */
function constantFault(condition: unknown): string | undefined {
  const one = condition as Condition;
  const isOfText = one.op === 'match' || (one.op === 'compare' && one.kind === 'text');
  return isOfText && referencedProperties(one).length === 0 ? `${one.op} has no property` : undefined;
}

function shapeFault(shape: unknown): string | undefined {
  if ('bbox' in (shape as object)) return checkBox((shape as { bbox: unknown }).bbox);
  readGeometry(shape);
  return undefined;
}
