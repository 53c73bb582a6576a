/** Validates requests and messages of other nodes with JSON Schemas. */
import { Ajv, type ValidateFunction } from 'ajv';

/** A validation error of Ajv. */
export interface Fault {
  instancePath: string;
  message?: string;
  params: object;
  keyword?: string;
  /** The value and the schema that it violates; only for requests. */
  data?: unknown;
  parentSchema?: { description?: string; properties?: object };
}

/** Returns the validation error of a JSON value in words; undefined if it is valid. */
export type Check = (value: unknown) => string | undefined;

/** JSON Schema of a count of bytes, tiles or commits. */
export const COUNT = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;

export const TEXT = { type: 'string' } as const;
export const NUMBER = { type: 'number' } as const;

/**
 * Adds keywords that only the OpenAPI document contains. The parser of the value checks these limits, because its errors have codes of
 * their own.
 */
export const documented = (schema: object, keywords: object) => ({ ...schema, documented: keywords });

/** JSON Schema of a list. */
export const listOf = (items: object) => ({ type: 'array', items });

/** JSON Schema of a list that begins with these elements. */
export const tupleOf = (...items: object[]) => ({ type: 'array', minItems: items.length, items });

/** JSON Schema of an object with all `members` and possibly the `optional` ones. Other members, from newer versions, are allowed. */
export const objectOf = (members: object, optional: object = {}) => ({
  type: 'object',
  required: Object.keys(members),
  properties: { ...members, ...optional },
});

/**
 * Ajv would first have to compile the schema of all schemas, which takes longer than a request, and each node would do so at the first
 * error of another node. A test checks the inputs of processes.
 */
const OPTIONS = {
  meta: false,
  strict: false,
  useDefaults: true,
  validateFormats: false,
  validateSchema: false,
  verbose: true,
} as const;

/** The Ajv instance for requests. It fills in defaults; `coerceTypes` also converts text to the type in the schema. */
export const requestAjv = (coerceTypes: 'array' | false): Ajv => new Ajv({ ...OPTIONS, coerceTypes });

/**
 * Returns a function that returns the faults of a value, or undefined if it is valid. A schema is compiled at its first use, because
 * compiling all schemas takes longer than most commands.
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

/** Finds infinite numbers, which schemas do not exclude: coercion converts the text `Infinity`, and JSON.parse converts 1e400. */
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

let sharedRequestAjv: Ajv | undefined;
let sharedMessageAjv: Ajv | undefined;

/** The check of JSON bodies in the API, for use elsewhere. Fills in defaults. */
export function requestCheck(schema: object): Check {
  const faults = validator(() => {
    sharedRequestAjv ??= requestAjv(false);
    return sharedRequestAjv.compile(schema);
  });
  return (value) => textOf(faults(value) ?? []);
}

/** The check of a message of another node, which may be long. Does not change the value. Numbers must be finite. */
export function messageCheck(schema: object): Check {
  let validate: ValidateFunction | undefined;
  return (value) => {
    sharedMessageAjv ??= new Ajv({ meta: false, strict: false, strictNumbers: true, validateSchema: false });
    validate ??= sharedMessageAjv.compile(schema);
    return validate(value) ? undefined : textOf(validate.errors as Fault[]);
  };
}
