/** A place that is trained outside of its node, as in a Job of Kubernetes: what is read there. */
import { createHash } from 'node:crypto';
import {
  type Filter,
  type FilterParams,
  parseFilter,
  rawUnlessAsked,
  type TileFinder,
} from '../../query/index.js';
import { foundTiles } from '../../wrangle/index.js';
import { nothingTrained, onePlaceAtATime } from '../errors.js';
import { validationDate } from '../hold-out.js';
import { validationTime } from '../inputs.js';
import { modelNamed } from '../models/index.js';
import type { DatePair, PlaceDate } from '../place-dates.js';
import { filesOf, groupByPlace, type Place } from '../places.js';

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

/** The only place that the filter picks, of any node. Throws TW_TRAIN_NOTHING, TW_TRAIN_ONE_PLACE. */
export async function pickedPlace(
  finder: TileFinder,
  inputs: PlaceInputs,
): Promise<{ place: Place; filter: Filter }> {
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
  const validationFrom = validationTime(inputs) ?? validationDate([place.tiles.map(({ start }) => start)]);
  return { collection, grid, geocode, tiles: digestOf(place), ...files, validationFrom };
}

/** Tiles never change; those of a place do. */
export function digestOf({ tiles }: Place): string {
  return createHash('sha256')
    .update(JSON.stringify(tiles.map(({ id, version }) => [id, version])))
    .digest('hex');
}
