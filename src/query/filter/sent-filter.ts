/** Checks filters that other nodes send: compiling a filter relies on its form. */
import { type Check, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import { readGeometry } from '../geometry/shape.js';
import { spatialRelations } from '../geometry/spatial.js';
import { checkNesting } from './filter.js';
import { kindOf, type PropertyKind, type PropertyName, queryables } from './properties.js';
import { temporalRelations } from './temporal.js';

const NAMES = Object.keys(queryables) as PropertyName[];
const COMPARISONS = ['=', '<>', '<', '<=', '>', '>='];

const named = (kind: PropertyKind) => ({ enum: NAMES.filter((name) => kindOf(name) === kind) });
const period = (...type: string[]) => ({ type: 'array', minItems: 2, maxItems: 2, items: { type } });

const condition = (ops: string[], members: object) => objectOf({ op: { enum: ops }, ...members });

const checkCondition = messageCheck({
  anyOf: [
    condition(COMPARISONS, { property: named('text'), value: TEXT }),
    condition(COMPARISONS, { property: named('number'), value: NUMBER }),
    condition(COMPARISONS, { property: named('time'), period: period('number') }),
    condition(['in'], { property: named('text'), values: listOf(TEXT) }),
    condition(['in'], { property: named('number'), values: listOf(NUMBER) }),
    condition(['like'], { property: named('text'), pattern: TEXT }),
    condition(['isNull'], { property: { enum: NAMES } }),
    condition(Object.keys(temporalRelations), { property: named('time'), period: period('number', 'null') }),
    condition(Object.keys(spatialRelations), { shape: { type: 'object' } }),
  ],
});

const checkBox = messageCheck({ type: 'array', minItems: 4, maxItems: 4, items: NUMBER });

/** Throws TW_QUERY_TOO_COMPLEX and TW_QUERY_GEOMETRY. */
export const checkSentFilter: Check = (filter) => {
  checkNesting(filter);
  for (const waiting = [filter]; waiting.length > 0; ) {
    const one = waiting.pop();
    const { op, arg, args, shape } = (one ?? {}) as Record<string, unknown>;
    if (op === 'not') waiting.push(arg);
    else if ((op === 'and' || op === 'or') && Array.isArray(args))
      for (const part of args) waiting.push(part);
    else {
      const fault = checkCondition(one) ?? (shape === undefined ? undefined : shapeFault(shape));
      if (fault !== undefined) return `a condition of its filter: ${fault}`;
    }
  }
  return undefined;
};

function shapeFault(shape: unknown): string | undefined {
  if ('bbox' in (shape as object)) return checkBox((shape as { bbox: unknown }).bbox);
  readGeometry(shape);
  return undefined;
}
