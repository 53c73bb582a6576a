/** A place that is trained outside of its node, as in a Job of Kubernetes: what is read there. */
import { createHash } from 'node:crypto';
import { foundTiles } from '../../derive/index.js';
import {
  type Filter,
  type FilterParams,
  parseFilter,
  rawUnlessAsked,
  type TileFinder,
} from '../../query/index.js';
import type { Storage } from '../../storage/index.js';
import type { DatePair, PlaceDate } from '../data/acquisitions.js';
import { filesOf, groupByPlace, type Place } from '../data/training-cells.js';
import { nothingTrained, onePlaceAtATime } from '../errors.js';
import { validationTime } from '../jobs/train-options.js';
import { modelNamed } from '../models/builtin-models.js';
import { validationDate } from '../patches/hold-out.js';
import { unfit } from '../patches/trainability.js';

/** Of the kind `model`, at the one place that the filter picks. */
export interface PlaceInputs {
  model: string;
  filter?: FilterParams;
  /** First time that is held out, RFC 3339. Default: the last quarter of the place's dates. */
  validationFrom?: string;
}

export interface RemotePlace extends Omit<Place, 'tiles'> {
  /** Digest of the tiles and their versions. */
  tiles: string;
  /** Files are named by their paths in the API. */
  dates: PlaceDate[];
  pairs?: DatePair[];
  /** The first time that is held out, milliseconds since 1970. */
  validationFrom?: number;
}

export interface CheckInputs {
  models: string[];
  filter?: FilterParams;
  /** As in `PlaceInputs`. */
  validationFrom?: string;
}

export interface CheckedPlace extends Omit<Place, 'tiles'> {
  /** The models that cannot be trained there, and why. */
  skipped: { model: string; reason: string }[];
}

/** Which models cannot be trained at the one place that the filter picks. Throws as `pickedPlace` does, and the TW_STORE_ and TW_RASTER_ errors. */
export async function checkPlace(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  { models, ...inputs }: CheckInputs,
): Promise<CheckedPlace> {
  const { place } = await pickedPlace(finder, inputs);
  const skipped: CheckedPlace['skipped'] = [];
  for (const model of models) {
    const reason = await unfit(storage, model, place, validationFrom(inputs, place));
    if (reason !== undefined) skipped.push({ model, reason });
  }
  const { collection, grid, geocode } = place;
  return { collection, grid, geocode, skipped };
}

/** The only place that the filter picks, of any node. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE, TW_QUERY_INSTANT. */
export async function pickedPlace(
  finder: TileFinder,
  inputs: Pick<PlaceInputs, 'filter' | 'validationFrom'>,
): Promise<{ place: Place; filter: Filter }> {
  validationTime(inputs);
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  const places = groupByPlace(await foundTiles(finder, filter));
  const [place] = places;
  if (!place) throw nothingTrained(0, []);
  if (places.length > 1) throw onePlaceAtATime(places.length);
  return { place, filter };
}

/** What has to be read to train it. Throws the same. */
export async function remotePlace(finder: TileFinder, inputs: PlaceInputs): Promise<RemotePlace> {
  const { place } = await pickedPlace(finder, inputs);
  const { collection, grid, geocode } = place;
  const tilePath = ({ id }: { id: string }, group: string) => `/tiles/${id}/${group}.tif`;
  const files = filesOf({ tilePath }, modelNamed(inputs.model), place);
  if ('skipped' in files) throw nothingTrained(1, [`${geocode}: ${files.skipped}`]);
  return {
    collection,
    grid,
    geocode,
    tiles: digestOf(place),
    ...files,
    validationFrom: validationFrom(inputs, place),
  };
}

/** Tiles never change; those of a place do. */
export function digestOf({ tiles }: Place): string {
  return createHash('sha256')
    .update(JSON.stringify(tiles.map(({ id, version }) => [id, version])))
    .digest('hex');
}

/** The first time that is held out: the given one, or by the dates of the place alone. */
function validationFrom(
  inputs: Pick<PlaceInputs, 'validationFrom'>,
  { tiles }: Pick<Place, 'tiles'>,
): number | undefined {
  return validationTime(inputs) ?? validationDate([tiles.map(({ start }) => start)]);
}
