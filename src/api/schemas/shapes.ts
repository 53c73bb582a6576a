/** Small words for JSON Schemas as OpenAPI 3.0 has them. */

export const text = { type: 'string' };
export const time = { type: 'string', format: 'date-time' };
export const number = { type: 'number' };
export const count = { type: 'integer', minimum: 0 };
export const percent = { type: 'number', minimum: 0, maximum: 100 };
export const flag = { type: 'boolean' };
export const anything = {};

export const listOf = (items: object) => ({ type: 'array', items });
export const orNull = (schema: object) => ({ ...schema, nullable: true });
export const mapOf = (schema: object) => ({ type: 'object', additionalProperties: schema });
export const ref = (name: string) => ({ $ref: `${name}#` });
export const oneOf = (...values: string[]) => ({ type: 'string', enum: values });

/** An object; members whose name ends with `?` may be absent, and others may be there. */
export function object(members: Record<string, object>) {
  const required = Object.keys(members).filter((name) => !name.endsWith('?'));
  const properties = Object.fromEntries(
    Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
  );
  return { type: 'object', properties, ...(required.length > 0 && { required }) };
}

export const links = { links: listOf(ref('Link')) };

/** Of an answer that lacks the tiles of some slots, because no node answers for them. */
export const partial = { 'partial?': flag, 'unansweredSlots?': listOf(count) };
