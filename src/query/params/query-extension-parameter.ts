/** The `query` extension of STAC APIs: comparisons by property. */
import { messageOf } from '../../errors.js';
import { parseJson } from '../../utils/json-text.js';
import { isObject, readCql2Json } from '../cql2/index.js';
import { badQueryExtension } from '../errors.js';
import { and, type Filter, literalPattern, parsePropertyName, propertyKind } from '../filter/index.js';
import { parseNumber } from '../values/index.js';

/** The operators and their CQL2. */
const OPERATORS: Record<string, (value: unknown) => [op: string, value: unknown]> = {
  eq: (value) => ['=', value],
  neq: (value) => ['<>', value],
  lt: (value) => ['<', value],
  lte: (value) => ['<=', value],
  gt: (value) => ['>', value],
  gte: (value) => ['>=', value],
  startsWith: (value) => ['like', `${literal(value)}%`],
  endsWith: (value) => ['like', `%${literal(value)}`],
  contains: (value) => ['like', `%${literal(value)}%`],
  in: (value) => ['in', value],
};

/** Names of the comparisons of a property. */
export const COMPARISON_NAMES = Object.keys(OPERATORS);

/** Parses `{"eo:cloud_cover": {"lte": 10}}`, also as JSON text. Throws TW_QUERY_QUERY, and the errors of `readCql2Json`. */
export function parseQueryExtension(given: unknown): Filter {
  const query = objectOf(given);
  return and(
    Object.entries(query).flatMap(([property, comparisons]) => {
      if (!isObject(comparisons)) throw badQueryExtension(`"${property}" has no object of comparisons`);
      return Object.entries(comparisons).map(([name, value]) => {
        if (!Object.hasOwn(OPERATORS, name)) {
          throw badQueryExtension(`"${name}" is not a comparison (these are ${COMPARISON_NAMES.join(', ')})`);
        }
        const [op, operand] = OPERATORS[name]!(typed(property, value));
        return readCql2Json({ op, args: [{ property }, operand] });
      });
    }),
  );
}

function objectOf(given: unknown): Record<string, unknown> {
  let value = given;
  try {
    if (typeof given === 'string') value = parseJson(given);
  } catch (error) {
    throw badQueryExtension.because(error, messageOf(error));
  }
  if (!isObject(value)) throw badQueryExtension('it is not an object');
  return value;
}

/** Some clients write numbers as texts in the JSON of a URL. */
function typed(property: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => typed(property, one));
  if (typeof value !== 'string' || propertyKind(parsePropertyName(property)) !== 'number') return value;
  const number = parseNumber(value);
  return Number.isNaN(number) ? value : number;
}

function literal(value: unknown): string {
  if (typeof value !== 'string') throw badQueryExtension('startsWith, endsWith and contains take a text');
  return literalPattern(value);
}
