/** A cell that is trained outside of its node, for example in a Kubernetes Job: the data to read there. */
import { createHash } from 'node:crypto';
import { searchAllTiles } from '../../derive/index.js';
import {
  defaultToRawSource,
  type Filter,
  type FilterParams,
  parseFilter,
  type TileFinder,
} from '../../query/index.js';
import type { Storage } from '../../storage/index.js';
import {
  type AcquisitionFiles,
  type DatePair,
  groupTilesByCell,
  type TrainingCell,
  trainingFiles,
} from '../data/index.js';
import { nothingTrained, oneCellAtATime } from '../errors.js';
import { reasonNotTrainable, validationTime } from '../jobs/index.js';
import { getModelSpec } from '../models/index.js';
import { validationDate } from '../patches/index.js';

/** Identifies a model: the kind `model`, at the only cell that matches the filter. */
export interface CellInputs {
  model: string;
  filter?: FilterParams;
  /** First held-out time, RFC 3339. Default: the last quarter of the dates of the cell. */
  validationFrom?: string;
}

export interface CellManifest extends Omit<TrainingCell, 'tiles'> {
  /** Digest of the tiles and their versions. */
  tiles: string;
  /** Files are identified by their paths in the API. */
  dates: AcquisitionFiles[];
  pairs?: DatePair[];
  /** First held-out time, milliseconds since 1970. */
  validationFrom?: number;
}

export interface CheckInputs {
  models: string[];
  filter?: FilterParams;
  /** As in `CellInputs`. */
  validationFrom?: string;
}

export interface CellCheck extends Omit<TrainingCell, 'tiles'> {
  /** Models that cannot be trained there, with reasons. */
  skipped: { model: string; reason: string }[];
}

/**
 * Checks which models cannot be trained at the only cell that matches the filter. Throws the errors of `selectedCell`, and the TW_STORE_
 * and TW_RASTER_ errors.
 */
export async function checkCell(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  { models, ...inputs }: CheckInputs,
): Promise<CellCheck> {
  const { cell } = await selectedCell(finder, inputs);
  const skipped: CellCheck['skipped'] = [];
  for (const model of models) {
    const reason = await reasonNotTrainable(storage, model, cell, validationFrom(inputs, cell));
    if (reason !== undefined) skipped.push({ model, reason });
  }
  const { collection, grid, geocode } = cell;
  return { collection, grid, geocode, skipped };
}

/** Returns the only cell that matches the filter, on any node. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE, TW_QUERY_INSTANT. */
export async function selectedCell(
  finder: TileFinder,
  inputs: Pick<CellInputs, 'filter' | 'validationFrom'>,
): Promise<{ cell: TrainingCell; filter: Filter }> {
  validationTime(inputs);
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const cells = groupTilesByCell(await searchAllTiles(finder, filter));
  const [cell] = cells;
  if (!cell) throw nothingTrained(0, []);
  if (cells.length > 1) throw oneCellAtATime(cells.length);
  return { cell, filter };
}

/** Returns the data that the training of the cell reads. Throws the errors of `selectedCell`. */
export async function cellManifest(finder: TileFinder, inputs: CellInputs): Promise<CellManifest> {
  const { cell } = await selectedCell(finder, inputs);
  const { collection, grid, geocode } = cell;
  const tilePath = ({ id }: { id: string }, group: string) => `/tiles/${id}/${group}.tif`;
  const files = trainingFiles({ tilePath }, getModelSpec(inputs.model), cell);
  if ('skipped' in files) throw nothingTrained(1, [`${geocode}: ${files.skipped}`]);
  return {
    collection,
    grid,
    geocode,
    tiles: tileVersionsDigest(cell),
    ...files,
    validationFrom: validationFrom(inputs, cell),
  };
}

/** Tiles never change, but the set of tiles of a cell does. */
export function tileVersionsDigest({ tiles }: TrainingCell): string {
  return createHash('sha256')
    .update(JSON.stringify(tiles.map(({ id, version }) => [id, version])))
    .digest('hex');
}

/** Returns the first held-out time: the given one, or one from the dates of this cell. */
function validationFrom(
  inputs: Pick<CellInputs, 'validationFrom'>,
  { tiles }: Pick<TrainingCell, 'tiles'>,
): number | undefined {
  return validationTime(inputs) ?? validationDate([tiles.map(({ start }) => start)]);
}
