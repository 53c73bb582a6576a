/** How the schemas of routes check requests and shape answers. */
import { Ajv, type ValidateFunction } from 'ajv';
import type { FastifyServerOptions } from 'fastify';

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;

const ajv = new Ajv({ strict: false, useDefaults: true, coerceTypes: 'array' });

const buildValidator = () => {
  return ({ schema }: { schema: object }) => whenUsed(() => ajv.compile(schema));
};

/**
 * A schema is compiled at the first request of its route, not at the start: compiling all takes longer than most commands.
 * Answers are written as they are: their schemas are for readers of `/openapi.json`.
 */
export const schemaCompilers: { compilersFactory: Compilers } = {
  compilersFactory: {
    // Fastify gives a compiler an object with the schema; its types say the schema itself.
    buildValidator: buildValidator as unknown as Compilers['buildValidator'],
    buildSerializer: () => () => JSON.stringify,
  },
};

/** Fastify reads `errors` of the function that it called. */
function whenUsed(compile: () => ValidateFunction): (data: unknown) => boolean {
  let compiled: ValidateFunction | undefined;
  const validate = (data: unknown) => {
    compiled ??= compile();
    const valid = compiled(data);
    validate.errors = compiled.errors;
    return valid;
  };
  validate.errors = undefined as ValidateFunction['errors'];
  return validate;
}
