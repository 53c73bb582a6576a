/**
 * Requests are held against the schemas of their routes. What comes in a URL or a header is text, and becomes the number or
 * list that the schema asks for; JSON says itself what it is, and is taken as it stands.
 */
import AjvCompiler from '@fastify/ajv-compiler';
import type { FastifyServerOptions } from 'fastify';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Factory = NonNullable<NonNullable<SchemaController['compilersFactory']>['buildValidator']>;

const OPTIONS = { removeAdditional: false, allErrors: false } as const;

const buildValidator = ((schemas: Parameters<Factory>[0]) => {
  const build = AjvCompiler();
  const ofText = build(schemas, { customOptions: { ...OPTIONS, coerceTypes: 'array' } });
  const ofJson = build(schemas, { customOptions: { ...OPTIONS, coerceTypes: false } });
  return (route: Parameters<typeof ofText>[0] & { httpPart?: string; schema: { format?: string } }) => {
    if (route.httpPart !== 'body') return finite(ofText(route) as Validator);
    // A file that is sent is a stream, and no text that could be looked at.
    return route.schema.format === 'binary' ? () => true : ofJson(route);
  };
}) as Factory;

interface Validator {
  (data: unknown): unknown;
  errors?: object[] | null;
}

/** The text `Infinity` is made a number, which no bound of a schema then holds: it is refused. */
function finite(validate: Validator) {
  return (data: Record<string, unknown> | null) => {
    if (!validate(data)) return { error: validate.errors };
    for (const [name, value] of Object.entries(data ?? {}))
      if ([value].flat().some((one) => one === Infinity || one === -Infinity))
        return { error: [{ instancePath: `/${name}`, message: 'must be a finite number', params: {} }] };
    return true;
  };
}

/**
 * For `Fastify(options)`. The schemas of answers describe them and do no more: a serializer made of them would leave out what
 * they do not name, and would be no faster on documents that are mostly text.
 */
export const schemaController: SchemaController = {
  compilersFactory: { buildValidator, buildSerializer: () => () => (document) => JSON.stringify(document) },
};
