/** Parameters of the URL that say which tiles a picture shows, and how. */
import { ALGORITHMS, RESAMPLING_METHODS, type RenderParams } from '../../../imagery/index.js';
import { type FilterParams, filterQuery } from '../../../query/index.js';

const text = { type: 'string' };
const texts = { type: 'array', items: text, minItems: 1 };

/** JSON Schema of the look: titiler's names. */
export const renderQuery = {
  assets: texts,
  bidx: { type: 'array', items: { type: 'integer', minimum: 1 }, minItems: 1 },
  expression: text,
  algorithm: { enum: ALGORITHMS },
  algorithm_params: { ...text, description: 'Parameters of the algorithm, as a JSON object' },
  rescale: texts,
  color_formula: {
    ...text,
    description: 'Operations such as: gamma rgb 1.8, sigmoidal rgb 6 0.2, saturation 1.2',
  },
  colormap_name: {
    ...text,
    description: "A colormap of Matplotlib or rio-tiler; reversed with '_r' behind its name",
  },
  colormap: { ...text, description: 'Colours of values or of intervals, as JSON' },
  resampling: { enum: RESAMPLING_METHODS },
  reproject: {
    enum: RESAMPLING_METHODS,
    description: 'Takes the place of resampling on maps of collections in the grid geohash',
  },
  nodata: text,
  return_mask: { type: 'boolean', description: 'false: the picture has no opacity' },
};

/** JSON Schema of what is read beyond a map tile: titiler's names. */
export const paddingQuery = {
  buffer: {
    type: 'number',
    minimum: 0.5,
    maximum: 99,
    multipleOf: 0.5,
    description:
      'Pixels beyond each side of the tile; the picture is larger by these, less those that the algorithm cuts off',
  },
  padding: {
    type: 'integer',
    minimum: 1,
    maximum: 99,
    description:
      'Accepted for clients of titiler; pixels beyond the tile that resampling needs are always read',
  },
};

/** JSON Schema of the filter of a map. The map tile gives the area, and the path gives the collection. */
export const mapFilterQuery = {
  datetime: text,
  minCloud: filterQuery.minCloud,
  maxCloud: filterQuery.maxCloud,
  minCoverage: filterQuery.minCoverage,
  source: text,
  platform: text,
};

export type MapQuery = RenderParams & FilterParams;

/** Pixels beyond a map tile. */
export interface PaddingQuery {
  buffer?: number;
}

const RENDER_PARAM_NAMES = Object.keys(renderQuery) as (keyof RenderParams)[];

/** The look alone, in one order: equal looks are equal as text. */
export function renderParams(query: RenderParams): RenderParams {
  return Object.fromEntries(RENDER_PARAM_NAMES.map((name) => [name, query[name]]));
}
