/**
 * Validates requests against the schemas of their routes. Values in a URL or a header are text, and are converted to the number or
 * list that the schema asks for. JSON bodies are not converted.
 */
import type { FastifyServerOptions } from 'fastify';
import { requestAjv, validator } from '../../json-schema.js';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Factories = NonNullable<SchemaController['compilersFactory']>;

/** A schema as Fastify hands it over, and the part of a request that it is for: body, querystring, params or headers. */
interface RouteSchema {
  schema: { format?: string };
  httpPart?: string;
}

function buildValidator() {
  const ofText = requestAjv('array');
  const ofJson = requestAjv(false);
  return ({ schema, httpPart }: RouteSchema) => {
    // A file that is sent is a stream, which has no members to check.
    if (httpPart === 'body' && schema.format === 'binary') return () => true;
    const faults = validator(() => (httpPart === 'body' ? ofJson : ofText).compile(schema));
    return (data: unknown) => {
      const error = faults(data);
      return error ? { error } : true;
    };
  };
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
