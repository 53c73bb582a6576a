/**
 * Validates requests against the schemas of their routes. Values in a URL or a header are text, and are converted to the number or
 * list that the schema asks for. JSON bodies are not converted.
 */
import type { FastifyServerOptions } from 'fastify';
import { requestAjv, validator } from '../../utils/json-schema.js';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Factories = NonNullable<SchemaController['compilersFactory']>;

/** A schema as Fastify passes it, and the part of a request that it is for: body, querystring, params or headers. */
interface RouteSchema {
  schema: { format?: string };
  httpPart?: string;
}

function buildValidator() {
  const textAjv = requestAjv('array');
  const jsonAjv = requestAjv(false);
  return ({ schema, httpPart }: RouteSchema) => {
    // An uploaded file is a stream, which has no members to check.
    if (httpPart === 'body' && schema.format === 'binary') return () => true;
    const faults = validator(() => (httpPart === 'body' ? jsonAjv : textAjv).compile(schema));
    return (data: unknown) => {
      const error = faults(data);
      return error ? { error } : true;
    };
  };
}

/**
 * For `Fastify(options)`. Response schemas are documentation only: a serializer built from them would drop members that they do not
 * name, and would not be faster on documents that are mostly text.
 */
export const schemaController: SchemaController = {
  compilersFactory: {
    // Fastify passes an object that contains the schema; its types declare the schema itself.
    buildValidator: buildValidator as unknown as Factories['buildValidator'],
    buildSerializer: () => () => (document) => JSON.stringify(document),
  },
};
