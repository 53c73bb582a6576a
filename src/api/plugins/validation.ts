/**
 * Validates requests against the schemas of their routes. Values in a URL or a header are text, and are converted to the number or
 * list that the schema asks for. JSON bodies are not converted. Every operation that answers JSON accepts `?f=json`.
 */
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
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

/**
 * `?f=json`, by which OGC clients name the format of an answer. Every operation that answers JSON accepts it. Other formats are refused, as
 * are unknown parameters of the operations of STAC and OGC.
 */
const FORMAT = { f: { enum: ['json'] } };

/** JSON Schema of the query of an operation that has no other parameters. */
export const FORMAT_QUERY = { type: 'object', properties: FORMAT };

const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/;

/** Tags of the operations whose standards require 400 for an unknown parameter (OGC API Features, 7.8.2). */
const STRICT_TAGS = ['stac', 'processes'];

interface Described {
  hide?: boolean;
  tags?: readonly string[];
  response?: unknown;
  querystring?: unknown;
}

/** True if every successful answer is JSON. False for JSON files, whose names state the format. */
function answersJson({ response = {} }: Described): boolean {
  const types = Object.entries(response as Record<string, { content?: object }>).flatMap(([status, one]) =>
    /^20[01]$/.test(status) ? Object.keys(one.content ?? {}) : [],
  );
  return types.length > 0 && types.every((type) => JSON_TYPE.test(type));
}

/** Call this before the routes are registered. Handlers do not see the parameter. */
export function registerFormatParameter(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const schema = route.schema as Described | undefined;
    if (!schema || schema.hide || !answersJson(schema)) return;
    const isStrict = route.method !== 'POST' && schema.tags?.some((tag) => STRICT_TAGS.includes(tag));
    const { properties, ...others } = (schema.querystring ?? {
      type: 'object',
      ...(isStrict && { additionalProperties: false }),
    }) as { properties?: object };
    route.schema = { ...route.schema, querystring: { ...others, properties: { ...properties, ...FORMAT } } };
  });
  server.addHook('preHandler', async ({ query }) => {
    delete (query as { f?: string }).f;
  });
}
