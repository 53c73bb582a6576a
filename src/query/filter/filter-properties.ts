/** The properties of Items that filters can use. */
import { notQueryable, unknownProperty } from '../errors.js';

/** How a property is compared. Times are milliseconds since 1970. */
export type PropertyKind = 'text' | 'number' | 'time' | 'geometry';

export interface Property {
  kind: PropertyKind;
  isPercent?: true;
  title: string;
  description: string;
}

const properties = {
  id: { kind: 'text', title: 'Item id', description: 'Id of the tile.' },
  collection: { kind: 'text', title: 'Collection', description: 'Id of the collection.' },
  geometry: { kind: 'geometry', title: 'Geometry', description: 'The cell of the tile, in degrees.' },
  datetime: {
    kind: 'time',
    title: 'Time',
    description: 'Time of the scene. Comparisons use its start, temporal functions the entire period.',
  },
  start_datetime: { kind: 'time', title: 'Start', description: 'Start, if the tile stands for a period.' },
  end_datetime: { kind: 'time', title: 'End', description: 'End, if the tile stands for a period.' },
  created: { kind: 'time', title: 'Created', description: 'When the tile was made.' },
  'eo:cloud_cover': {
    kind: 'number',
    isPercent: true,
    title: 'Cloud cover',
    description: 'Percent of cloud among the assessed pixels; null if it could not be determined.',
  },
  pixel_coverage: {
    kind: 'number',
    isPercent: true,
    title: 'Pixel coverage',
    description: 'Percent of the cell with data in every band.',
  },
  'hsi:wavelength_min': {
    kind: 'number',
    title: 'Shortest wavelength',
    description: 'Shortest centre of the good bands of a spectrum, micrometres; null without a spectrum.',
  },
  'hsi:wavelength_max': {
    kind: 'number',
    title: 'Longest wavelength',
    description: 'Longest centre of the good bands of a spectrum, micrometres; null without a spectrum.',
  },
  platform: { kind: 'text', title: 'Platform', description: 'Satellite or aircraft, if known.' },
  source: { kind: 'text', title: 'Source', description: 'The last operation that made the tile.' },
  geocode: { kind: 'text', title: 'Geocode', description: 'Geohash or quadkey of the cell.' },
  'grid:code': { kind: 'text', title: 'Grid code', description: 'Grid and geocode: GEOHASH-9q8yy.' },
  scene: { kind: 'text', title: 'Scene', description: 'Id of the scene that the tile was cut from.' },
} satisfies Record<string, Property>;

export type PropertyName = keyof typeof properties;

type NamesOf<Kind> = {
  [P in PropertyName]: (typeof properties)[P]['kind'] extends Kind ? P : never;
}[PropertyName];
export type TextProperty = NamesOf<'text'>;
export type NumberProperty = NamesOf<'number'>;
export type WavelengthProperty = Extract<NumberProperty, `hsi:${string}`>;
export type TimeProperty = NamesOf<'time'>;

export const queryables: Readonly<Record<PropertyName, Property>> = properties;

/** Other members and properties of Items. */
const NOT_QUERYABLE = new Set([
  'type',
  'stac_version',
  'stac_extensions',
  'bbox',
  'links',
  'assets',
  'properties',
  'license',
  'attribution',
  'version',
  'proj:epsg',
  'proj:bbox',
  'proj:geometry',
]);

/** The property with this name, which may begin with `properties.`. Throws TW_QUERY_NOT_QUERYABLE, TW_QUERY_UNKNOWN_PROPERTY. */
export function parsePropertyName(given: string, where = ''): PropertyName {
  const name = given.replace(/^properties\./, '');
  if (Object.hasOwn(properties, name)) return name as PropertyName;
  const known = Object.keys(properties).join(', ');
  throw NOT_QUERYABLE.has(name) ? notQueryable(given, where, known) : unknownProperty(given, where, known);
}

export function propertyKind(property: PropertyName): PropertyKind {
  return properties[property].kind;
}
