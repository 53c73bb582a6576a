/** Chooses the places that are trained again, if the duration of the trainings is limited. */
import { comparePlaces } from './compare-places.js';
import type { PlaceFreshness } from './judge-places.js';

/** A place that is not trained again, and the reason. */
export interface LeftOut {
  collection: string;
  geocode: string;
  reason: string;
  /** True if its model has drifted, but the budget is too small. */
  drifted?: true;
}

/** Training never takes no time; models of older versions may say so. */
const MIN_SECONDS = 0.01;

/** Squared error that the training is expected to remove: the increase of the error, over all pixels of the place. */
function expectedGain({ error = 0, promised = 0, pixels }: PlaceFreshness): number {
  return Math.max(0, error - promised) * pixels;
}

/**
 * Returns the drifted places in the order of their gain for each second of training, as many as fit into `budget` seconds, and the reasons
 * why the others are left out. A place that does not fit does not exclude a cheaper one after it. The result does not depend on the order
 * of the places.
 */
export function chooseStale(
  places: readonly PlaceFreshness[],
  budget = Infinity,
): { chosen: PlaceFreshness[]; leftOut: LeftOut[] } {
  const leftOut: LeftOut[] = [];
  const leave = ({ collection, geocode }: PlaceFreshness, reason: string, drifted?: true) =>
    leftOut.push({ collection, geocode, reason, ...(drifted && { drifted }) });
  const cost = ({ seconds }: PlaceFreshness) => Math.max(MIN_SECONDS, seconds);
  const value = (place: PlaceFreshness) => expectedGain(place) / cost(place);
  const drifted: PlaceFreshness[] = [];
  for (const place of places) {
    if (place.status === 'drifted' && expectedGain(place) > 0) drifted.push(place);
    else if (place.status === 'drifted')
      leave(place, 'the error of the last date is not larger than promised');
    else leave(place, place.status === 'fresh' ? 'the model is fresh' : `unknown: ${place.reason}`);
  }
  drifted.sort((a, b) => value(b) - value(a) || comparePlaces(a, b));
  const chosen: PlaceFreshness[] = [];
  let left = budget;
  for (const place of drifted) {
    if (cost(place) <= left) {
      chosen.push(place);
      left -= cost(place);
    } else
      leave(
        place,
        `the last training took ${place.seconds.toFixed(1)} s, and ${left.toFixed(1)} s of the budget of ${budget} s were left for it`,
        true,
      );
  }
  leftOut.sort(comparePlaces);
  return { chosen, leftOut };
}
