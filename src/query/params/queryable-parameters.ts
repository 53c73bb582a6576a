/** The properties that filters can use, as JSON Schema: OGC API Features part 3, and the filter extension of STAC APIs. */
import { tileSources } from '../../storage/index.js';
import { type Property, type PropertyKind, queryables } from '../filter/index.js';

const KINDS: Record<PropertyKind, object> = {
  text: { type: 'string' },
  number: { type: 'number', minimum: 0 },
  time: { type: 'string', format: 'date-time' },
  geometry: { $ref: 'https://geojson.org/schema/Geometry.json' },
};

/** `url` is the URL of the document. `names` has the known values of some properties. */
export function queryablesSchema(
  url: string,
  title: string,
  names: { collection?: string[]; platform?: string[] },
): object {
  const choices: Record<string, readonly string[] | undefined> = { ...names, source: tileSources };
  const properties = Object.entries(queryables).map(
    ([name, { kind, isPercent, title: label, description }]: [string, Property]) => {
      const choice = choices[name];
      const schema = { title: label, description, ...KINDS[kind], ...(isPercent && { maximum: 100 }) };
      return [name, { ...schema, ...(choice?.length && { enum: choice }) }];
    },
  );
  return {
    $schema: 'https://json-schema.org/draft/2019-09/schema',
    $id: url,
    type: 'object',
    title,
    description: 'Names that the parameter `filter` accepts.',
    properties: Object.fromEntries(properties),
    additionalProperties: false,
  };
}
