/** URL parameters that select the tiles of a picture and how it is rendered. */
import {
  ALGORITHMS,
  COLORMAPS,
  PIXEL_SELECTIONS,
  type PixelSelection,
  RESAMPLING_METHODS,
  type RenderParams,
} from '../../../imagery/index.js';
import { datetimeSchema, type FilterParams, filterQuery } from '../../../query/index.js';
import { documented } from '../../../utils/json-schema.js';

const text = { type: 'string' };
const texts = { type: 'array', items: text, minItems: 1 };

const NUMBER = '[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?';

/** JSON Schema of the render options, with titiler's names. */
export const renderQuery = {
  assets: texts,
  bidx: { type: 'array', items: { type: 'integer', minimum: 1 }, minItems: 1 },
  expression: { ...text, description: 'Band expressions; not together with assets and bidx' },
  algorithm: { enum: ALGORITHMS },
  algorithm_params: { ...text, description: 'Parameters of the algorithm, as a JSON object' },
  rescale: {
    ...texts,
    items: documented(text, { pattern: `^${NUMBER},${NUMBER}$` }),
    description: 'low,high with low below high: one for all bands, or one for each',
  },
  color_formula: {
    ...text,
    description: 'Operations such as: gamma rgb 1.8, sigmoidal rgb 6 0.2, saturation 1.2',
  },
  colormap_name: documented(
    {
      ...text,
      description: "A colormap of Matplotlib or rio-tiler; a name with the suffix '_r' reverses it",
    },
    { enum: COLORMAPS.flatMap((name) => [name, `${name}_r`]) },
  ),
  colormap: {
    ...text,
    description: 'Colours of values or of intervals, as JSON; not together with colormap_name',
  },
  resampling: { enum: RESAMPLING_METHODS },
  reproject: {
    enum: RESAMPLING_METHODS,
    description: 'Replaces resampling on maps of collections on the geohash grid',
  },
  nodata: documented(text, { pattern: `^([nN][aA][nN]|${NUMBER})$` }),
  return_mask: { type: 'boolean', description: 'false: the picture has no alpha channel' },
};

/** JSON Schema of the parameters of map tiles alone: margins and the choice of pixels, with titiler's names. */
export const mosaicQuery = {
  pixel_selection: {
    enum: PIXEL_SELECTIONS,
    default: 'first',
    description:
      'first: each pixel is from the least cloudy tile in which it is clear. median: the median of up to nine clear tiles',
  },
  buffer: {
    type: 'number',
    minimum: 0.5,
    maximum: 99,
    multipleOf: 0.5,
    description:
      'Pixels beyond each side of the tile; the picture is larger by these pixels, except those that the algorithm removes',
  },
  padding: {
    type: 'integer',
    minimum: 1,
    maximum: 99,
    description:
      'Accepted for compatibility with titiler; the pixels that resampling needs beyond the tile are always read',
  },
};

/** JSON Schema of the filter of a map. The area comes from the map tile, the collection from the path. */
export const mapFilterQuery = {
  datetime: datetimeSchema({ periods: true }),
  minCloud: filterQuery.minCloud,
  maxCloud: filterQuery.maxCloud,
  minCoverage: filterQuery.minCoverage,
  source: filterQuery.source,
  platform: text,
};

export type MapQuery = RenderParams & FilterParams;

export interface MosaicQuery {
  pixel_selection?: PixelSelection;
  /** Margin around a map tile, pixels. */
  buffer?: number;
}

const RENDER_PARAM_NAMES = Object.keys(renderQuery) as (keyof RenderParams)[];

/** Only the render options, in a fixed order, so that equal options are equal as text. */
export function renderParams(query: RenderParams): RenderParams {
  return Object.fromEntries(RENDER_PARAM_NAMES.map((name) => [name, query[name]]));
}
