/** Parameters of the URL that say which tiles a picture shows, and how. */
import type { LookParams } from '../../imagery/index.js';
import { type FilterParams, filterQuery } from '../../query/index.js';

const text = { type: 'string' };
const texts = { type: 'array', items: text, minItems: 1 };

/** JSON Schema of the look: titiler's names. */
export const lookQuery = {
  assets: texts,
  bidx: { type: 'array', items: { type: 'integer', minimum: 1 }, minItems: 1 },
  expression: text,
  rescale: texts,
  colormap_name: text,
  resampling: { enum: ['nearest', 'bilinear'] },
  nodata: text,
};

/** JSON Schema of the filter of a map: where it looks is the map tile, and of what its address. */
export const mapFilterQuery = {
  datetime: text,
  minCloud: filterQuery.minCloud,
  maxCloud: filterQuery.maxCloud,
  minCoverage: filterQuery.minCoverage,
  source: text,
  platform: text,
};

export type MapQuery = LookParams & FilterParams;

/** The look alone, in one order: equal looks are equal as text. */
export function lookParams(query: LookParams): LookParams {
  const { assets, bidx, expression, rescale, colormap_name, resampling, nodata } = query;
  return { assets, bidx, expression, rescale, colormap_name, resampling, nodata };
}
