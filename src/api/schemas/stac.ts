/** Documents of the STAC API: catalog, collections, Items, aggregations. */

import { listOf } from '../../utils/json-schema.js';
import {
  anything,
  boolean,
  count,
  links,
  mapOf,
  number,
  object,
  oneOf,
  orNull,
  partialProperties,
  percent,
  ref,
  text,
  time,
} from './builders.js';

const version = { stac_version: oneOf('1.0.0') };
const bbox = { type: 'array', items: number, minItems: 4, maxItems: 6 };

const asset = object({
  href: text,
  type: text,
  title: text,
  roles: listOf(text),
  'proj:shape?': { type: 'array', items: count, minItems: 2, maxItems: 2 },
  'proj:transform?': { type: 'array', items: number, minItems: 6, maxItems: 6 },
  'eo:bands?': listOf(
    object({
      name: text,
      'common_name?': text,
      'center_wavelength?': number,
      'full_width_half_max?': number,
      'bad_band?': boolean,
    }),
  ),
  'classification:classes?': listOf(
    object({ value: count, name: text, 'title?': text, 'description?': text, 'color_hint?': text }),
  ),
  'data_type?': text,
  'nodata?': { type: ['number', 'string'] },
  'raster:scale?': number,
  'raster:offset?': number,
  'raster:bands?': listOf(object({ data_type: text, scale: number, offset: number })),
});

/** The members of each Item, except its properties. */
const item = {
  type: oneOf('Feature'),
  ...version,
  stac_extensions: listOf(text),
  id: text,
  geometry: ref('Area'),
  bbox,
  ...links,
  assets: mapOf(asset),
};

const itemProperties = object({
  datetime: time,
  'start_datetime?': time,
  'end_datetime?': time,
  created: time,
  'platform?': text,
  license: text,
  'attribution?': text,
  geocode: text,
  'grid:code': text,
  scene: text,
  version: text,
  source: text,
  'model?': text,
  'model_version?': text,
  'model_place?': { enum: ['own', 'region', 'other'] },
  'model_halo?': { enum: ['partial'] },
  'warnings?': listOf(text),
  pixel_coverage: percent,
  'eo:cloud_cover?': percent,
  'pixels_estimated?': percent,
  'pixels_of_other_dates?': percent,
  'hsi:wavelength_min?': number,
  'hsi:wavelength_max?': number,
  'proj:epsg': count,
  'proj:bbox': bbox,
  'proj:geometry': ref('Polygon'),
});

/** The members of a problem document (RFC 9457). */
export const problem = {
  type: text,
  title: text,
  status: { type: 'integer', minimum: 400, maximum: 599 },
  code: { type: 'string', pattern: '^TW_[A-Z0-9_]+$' },
  detail: text,
  'instance?': text,
  requestId: text,
};

export const stacSchemas = {
  Problem: object(problem),
  Link: object({
    rel: text,
    href: text,
    'type?': text,
    'title?': text,
    'method?': oneOf('GET', 'POST'),
    'body?': { type: 'object' },
  }),
  Area: object({ type: oneOf('Polygon', 'MultiPolygon'), coordinates: listOf({ type: 'array', items: {} }) }),
  Polygon: object({ type: oneOf('Polygon'), coordinates: listOf(listOf(listOf(number))) }),
  Catalog: object({
    type: oneOf('Catalog'),
    ...version,
    id: text,
    title: text,
    description: text,
    conformsTo: listOf(text),
    ...links,
  }),
  Conformance: object({ conformsTo: listOf(text) }),
  Collection: object({
    type: oneOf('Collection'),
    ...version,
    stac_extensions: listOf(text),
    id: text,
    title: text,
    description: text,
    license: text,
    'attribution?': text,
    'providers?': listOf(object({ name: text, 'roles?': listOf(text), 'url?': text })),
    extent: object({
      spatial: object({ bbox: listOf(bbox) }),
      temporal: object({ interval: listOf(listOf(orNull(time))) }),
    }),
    summaries: { type: 'object' },
    'item_assets?': mapOf(object({ type: text, 'title?': text, roles: listOf(text) })),
    itemType: oneOf('feature'),
    grid: oneOf('geohash', 'quadtile'),
    precision: count,
    ...partialProperties,
    ...links,
  }),
  Collections: object({ collections: listOf(ref('Collection')), ...partialProperties, ...links }),
  Item: object({
    ...item,
    collection: text,
    properties: itemProperties,
  }),
  /** A version of a trained model. */
  ModelItem: object({
    ...item,
    properties: object({
      title: text,
      description: text,
      datetime: orNull(time),
      start_datetime: time,
      end_datetime: time,
      created: time,
      version: text,
      geocode: text,
      'grid:code': text,
      'mlm:name': text,
      'mlm:architecture': text,
      'mlm:tasks': listOf(text),
      'mlm:framework': text,
      'mlm:framework_version?': text,
      'mlm:total_parameters': count,
      'mlm:pretrained': boolean,
      'mlm:pretrained_source': orNull(text),
      'mlm:input': listOf({ type: 'object' }),
      'mlm:output': listOf({ type: 'object' }),
      'mlm:hyperparameters': { type: 'object' },
      'eo:bands': listOf(object({ name: text, 'common_name?': text })),
    }),
  }),
  /** An Item of which `fields` may remove all members except the type. */
  ItemPart: object({
    type: oneOf('Feature'),
    'stac_version?': text,
    'stac_extensions?': listOf(text),
    'id?': text,
    'collection?': text,
    'geometry?': { type: 'object' },
    'bbox?': bbox,
    'properties?': { type: 'object' },
    'links?': listOf(ref('Link')),
    'assets?': { type: 'object' },
  }),
  FeatureCollection: object({
    type: oneOf('FeatureCollection'),
    features: listOf(ref('ItemPart')),
    numberMatched: count,
    numberReturned: count,
    ...partialProperties,
    ...links,
  }),
  Queryables: object({
    type: oneOf('object'),
    title: text,
    properties: mapOf({ type: 'object' }),
  }),
  Aggregations: object({
    type: oneOf('AggregationCollection'),
    aggregations: listOf(
      object({
        name: text,
        data_type: text,
        'value?': { ...anything, nullable: true },
        'buckets?': listOf(
          object({ key: text, data_type: text, frequency: count, 'from?': number, 'to?': number }),
        ),
        'overflow?': count,
      }),
    ),
    ...partialProperties,
    ...links,
  }),
};
