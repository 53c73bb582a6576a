import { documented } from '../../../json-schema.js';

const TYPES = ['Point', 'Polygon', 'MultiPolygon', 'Feature', 'FeatureCollection'];

/** JSON Schema of the place of a series. */
export const zoneSchema = documented(
  {
    type: 'object',
    description:
      'GeoJSON Point, Polygon or MultiPolygon in longitude and latitude, also as a Feature or a collection of one Feature',
  },
  { required: ['type'], properties: { type: { enum: TYPES } } },
);
