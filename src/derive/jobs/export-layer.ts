/** The layers that `export` knows: the tiles and bands that the models of one kind make, and why none of them is selected. */
import { and, type Filter, type FilterParams, parseFilter, type TileFinder } from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';
import { nothingToExport } from '../errors.js';
import { searchTilePages, sourceFilter } from './derive-job-tiles.js';

export interface ExportLayer {
  /** The kind of model. */
  name: string;
  bands: string[];
  /** The tiles of the layer. A raw tile without cloud has no cloud-free tile. */
  tiles: Filter;
  /** The source of the tiles that the models have made. */
  made: TileRecord['source'];
}

const indexMap = (name: string): ExportLayer => ({
  name,
  bands: [name],
  tiles: sourceFilter('predicted'),
  made: 'predicted',
});

const WITHOUT_CLOUD = and([sourceFilter('raw'), { op: '=', property: 'eo:cloud_cover', value: 0 }]);

const LAYERS: ExportLayer[] = [
  indexMap('ndvi'),
  indexMap('ndmi'),
  {
    name: 'cloud-removal',
    bands: ['red', 'green', 'blue'],
    tiles: { op: 'or', args: [sourceFilter('cloud-free'), WITHOUT_CLOUD] },
    made: 'cloud-free',
  },
];

export const LAYER_NAMES = LAYERS.map(({ name }) => name);

export const exportLayer = (name: string | undefined): ExportLayer | undefined =>
  LAYERS.find((layer) => layer.name === name);

type Condition = keyof FilterParams;

/** Conditions of a filter that the tiles of a layer may fail, the most specific first. Collections always count. */
const TIME: Condition[] = ['datetime'];
const REGION: Condition[] = ['bbox', 'intersects', 'geocode', 'recurse'];

/**
 * Returns the error of a selection without tiles that the models of the layer have made: it says which condition excludes them, or that
 * the models have made no tiles.
 */
export async function noTileOfLayer(
  finder: TileFinder,
  { name, tiles, made }: ExportLayer,
  params: FilterParams,
  hasBands: (tile: TileRecord) => boolean,
): Promise<Error> {
  const exist = async (filter: FilterParams) => {
    for await (const page of searchTilePages(finder, and([parseFilter(filter), tiles, sourceFilter(made)])))
      if (page.some(hasBands)) return true;
    return false;
  };
  if (!(await exist(params.collections === undefined ? {} : { collections: params.collections })))
    return nothingToExport(
      `the layer ${name} has no tiles yet: run "tilewright train ${name}" and "tilewright predict ${name}", or over HTTP the processes train and predict`,
    );
  for (const [conditions, where] of [
    [TIME, 'at this time (datetime)'],
    [REGION, 'in this region'],
    [[...TIME, ...REGION], 'at this time (datetime) in this region'],
  ] as const)
    if (conditions.some((one) => params[one] !== undefined) && (await exist(without(params, conditions))))
      return nothingToExport(`the layer ${name} has tiles, but none ${where}`);
  return nothingToExport(`the layer ${name} has tiles, but none that match the filter`);
}

const without = (params: FilterParams, conditions: readonly Condition[]): FilterParams =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !conditions.includes(name as Condition)));
