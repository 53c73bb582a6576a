/**
 * `?f=json`, by which OGC clients name the format of an answer. Every operation that answers JSON accepts it. Other formats are refused, as
 * are unknown parameters of the operations of STAC and OGC.
 */
import type { FastifyInstance } from 'fastify';

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
