/**
 * Requests are held against the schemas of their routes. What comes in a URL or a header is text, and becomes the number or
 * list that the schema asks for; JSON says itself what it is, and is taken as it stands.
 */
import { Ajv, type ValidateFunction } from 'ajv';
import type { FastifyServerOptions } from 'fastify';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Factories = NonNullable<SchemaController['compilersFactory']>;

/** A schema as Fastify hands it over, and the part of a request that it is for: body, querystring, params or headers. */
interface RouteSchema {
  schema: { format?: string };
  httpPart?: string;
}

const OPTIONS = { strict: false, useDefaults: true, validateFormats: false } as const;

function buildValidator() {
  const ofText = new Ajv({ ...OPTIONS, coerceTypes: 'array' });
  const ofJson = new Ajv({ ...OPTIONS, coerceTypes: false });
  return ({ schema, httpPart }: RouteSchema) => {
    if (httpPart !== 'body') return validator(() => ofText.compile(schema));
    // A file that is sent is a stream, and no text that could be looked at.
    return schema.format === 'binary' ? () => true : validator(() => ofJson.compile(schema));
  };
}

interface Fault {
  instancePath: string;
  message?: string;
  params: object;
}

/** A schema is compiled at the first request of its route, not at the start: compiling all takes longer than most commands. */
function validator(compile: () => ValidateFunction) {
  let validate: ValidateFunction | undefined;
  return (data: object | null) => {
    validate ??= compile();
    if (!validate(data)) return { error: validate.errors };
    const fault = infiniteNumber(data);
    return fault ? { error: [fault] } : true;
  };
}

/** The text `Infinity` is made a number, and so is 1e400 in JSON, which no bound of a schema then holds: it is refused. */
function infiniteNumber(data: unknown): Fault | undefined {
  const waiting: [path: string, value: unknown][] = [['', data]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [path, value] = next;
    if (value === Infinity || value === -Infinity)
      return { instancePath: path, message: 'must be a finite number', params: {} };
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) waiting.push([`${path}/${name}`, member]);
  }
  return undefined;
}

/**
 * For `Fastify(options)`. The schemas of answers describe them and do no more: a serializer made of them would leave out what
 * they do not name, and would be no faster on documents that are mostly text.
 */
export const schemaController: SchemaController = {
  compilersFactory: {
    // Fastify gives a compiler an object with the schema; its types say the schema itself.
    buildValidator: buildValidator as unknown as Factories['buildValidator'],
    buildSerializer: () => () => (document) => JSON.stringify(document),
  },
};
