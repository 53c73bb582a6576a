/** Builders of JSON Schemas, in the form of OpenAPI 3.0. */
import { listOf, NUMBER, TEXT } from '../../utils/json-schema.js';

export { listOf };
export const text = TEXT;
export const number = NUMBER;
export const time = { type: 'string', format: 'date-time' };
export const count = { type: 'integer', minimum: 0 };
export const percent = { type: 'number', minimum: 0, maximum: 100 };
export const boolean = { type: 'boolean' };
export const anything = {};

export const orNull = (schema: object) => ({ ...schema, nullable: true });
export const mapOf = (schema: object) => ({ type: 'object', additionalProperties: schema });
export const ref = (name: string) => ({ $ref: `${name}#` });
export const oneOf = (...values: string[]) => ({ type: 'string', enum: values });

/** True for a keyword that OpenAPI 3.0 lacks, or allows only in another form. */
const isUnsupportedKeyword = (keyword: string, value: unknown) =>
  keyword === 'propertyNames' || (keyword === 'required' && Array.isArray(value) && value.length === 0);

/**
 * Adds the limits that parsers check, and removes keywords that OpenAPI 3.0 does not support. Requests are validated with the original
 * schema.
 */
export function publishedSchema<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(publishedSchema) as T;
  if (typeof schema !== 'object' || schema === null) return schema;
  const { documented, ...validated } = schema as { documented?: object };
  const kept = Object.entries({ ...validated, ...documented }).filter(
    ([name, value]) => value !== undefined && !isUnsupportedKeyword(name, value),
  );
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      name === 'properties' ? publishedProperties(value as object) : publishedSchema(value),
    ]),
  ) as T;
}

/** Handles names of properties separately, because they may equal keywords. */
function publishedProperties(properties: object): object {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, publishedSchema(schema)]),
  );
}

/** An object that accepts no other members. `more` has further keywords, such as `required`. */
export const closedObject = (properties: object, more: object = {}) => ({
  type: 'object',
  additionalProperties: false,
  ...more,
  properties,
});

/** An object. A member whose name ends with `?` is optional, and other members are allowed. */
export function object(members: Record<string, object>) {
  const required = Object.keys(members).filter((name) => !name.endsWith('?'));
  const properties = Object.fromEntries(
    Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
  );
  return { type: 'object', properties, ...(required.length > 0 && { required }) };
}

export const links = { links: listOf(ref('Link')) };

/** Members of an answer that lacks the tiles of some slots, because no node answers for them. */
export const partialProperties = { 'partial?': boolean, 'unansweredSlots?': listOf(count) };
