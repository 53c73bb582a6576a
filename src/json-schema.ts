/** Checks JSON values against JSON Schemas: requests, and what other nodes send. */
import { Ajv, type ValidateFunction } from 'ajv';

/** A fault of a value, as Ajv reports it. */
export interface Fault {
  instancePath: string;
  message?: string;
  params: object;
  keyword?: string;
  /** The value, and the schema that it does not fit: of requests alone. */
  data?: unknown;
  parentSchema?: { description?: string; properties?: object };
}

/** Returns what is wrong with a JSON value; undefined if nothing is. */
export type Check = (value: unknown) => string | undefined;

/** JSON Schema of a number that counts: of bytes, tiles, commits. */
export const COUNT = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;

export const TEXT = { type: 'string' } as const;
export const NUMBER = { type: 'number' } as const;

/** JSON Schema of a list. */
export const listOf = (items: object) => ({ type: 'array', items });

/** JSON Schema of a list whose first elements are these. */
export const tupleOf = (...items: object[]) => ({ type: 'array', minItems: items.length, items });

/** JSON Schema of an object that has all `members`, may have the `optional` ones, and may have others that a newer version adds. */
export const objectOf = (members: object, optional: object = {}) => ({
  type: 'object',
  required: Object.keys(members),
  properties: { ...members, ...optional },
});

const OPTIONS = { strict: false, useDefaults: true, validateFormats: false, verbose: true } as const;

/** A validator of requests. It fills in defaults; `coerceTypes` also makes text the type that the schema wants. */
export const requestAjv = (coerceTypes: 'array' | false): Ajv => new Ajv({ ...OPTIONS, coerceTypes });

/**
 * The faults of a value; undefined if it fits. A schema is compiled when it is first used, because compiling all of them takes longer than
 * most commands.
 */
export function validator(compile: () => ValidateFunction): (value: unknown) => Fault[] | undefined {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= compile();
    if (!validate(value)) return validate.errors as Fault[];
    const fault = infiniteNumber(value);
    return fault && [fault];
  };
}

/** Coercion makes the text `Infinity` a number, and JSON.parse makes 1e400 one. No bound of a schema excludes these, so they are refused here. */
function infiniteNumber(value: unknown): Fault | undefined {
  const waiting: [path: string, value: unknown][] = [['', value]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [path, value] = next;
    if (value === Infinity || value === -Infinity)
      return { instancePath: path, message: 'must be a finite number', params: {} };
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) waiting.push([`${path}/${name}`, member]);
  }
  return undefined;
}

function textOf([fault]: Fault[]): string | undefined {
  if (!fault) return undefined;
  const { additionalProperty: unknown } = fault.params as { additionalProperty?: string };
  return `${fault.instancePath} ${fault.message}${unknown === undefined ? '' : `: ${unknown}`}`.trim();
}

let ofRequests: Ajv | undefined;
let ofMessages: Ajv | undefined;

/** The check that the API makes of a request's JSON body, for the same schema elsewhere. Fills in defaults. */
export function requestCheck(schema: object): Check {
  const faults = validator(() => {
    ofRequests ??= requestAjv(false);
    return ofRequests.compile(schema);
  });
  return (value) => textOf(faults(value) ?? []);
}

/** The check of what another node sends, which may be long: the value is not changed, and numbers are finite wherever the schema says number. */
export function messageCheck(schema: object): Check {
  let validate: ValidateFunction | undefined;
  return (value) => {
    ofMessages ??= new Ajv({ strict: false, strictNumbers: true });
    validate ??= ofMessages.compile(schema);
    return validate(value) ? undefined : textOf(validate.errors as Fault[]);
  };
}
