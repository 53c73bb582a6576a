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
  /** For such a place: its training takes about so many seconds, and the smallest budget that surely includes it. */
  seconds?: number;
  budget?: number;
}

/** Training never takes no time; models of older versions may say so. */
const MIN_SECONDS = 0.01;

/** Squared error that the training is expected to remove: the increase of the error, over all pixels of the place. */
function expectedGain({ error = 0, promised = 0, pixels }: PlaceFreshness): number {
  return Math.max(0, error - promised) * pixels;
}

interface StaleChoice {
  chosen: PlaceFreshness[];
  /** Those that the budget excludes come first, in the order in which a larger budget would include them. */
  leftOut: LeftOut[];
  /** Estimated duration of the trainings of the chosen places. */
  seconds: number;
}

/**
 * Returns the drifted places in the order of their gain for each second of training, as many as fit into `budget` seconds, and the reasons
 * why the others are left out. A place that does not fit does not exclude a cheaper one after it. The result does not depend on the order
 * of the places. `passes`: those that a new training takes over the patches of a place. A training is estimated to take the seconds of
 * the last one, times the ratio of the passes.
 */
export function chooseStale(
  places: readonly PlaceFreshness[],
  budget = Infinity,
  passes?: number,
): StaleChoice {
  const leftOut: LeftOut[] = [];
  const leave = ({ collection, geocode }: PlaceFreshness, reason: string, more: Partial<LeftOut> = {}) =>
    leftOut.push({ collection, geocode, reason, ...more });
  const cost = ({ seconds, passes: last }: PlaceFreshness) =>
    Math.max(MIN_SECONDS, passes && last ? (seconds * passes) / last : seconds);
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
  let [used, needed] = [0, 0];
  for (const place of drifted) {
    const seconds = cost(place);
    needed += seconds;
    if (used + seconds <= budget) {
      chosen.push(place);
      used += seconds;
      continue;
    }
    const enough = Math.ceil(10 * needed) / 10;
    leave(
      place,
      `its training takes about ${seconds.toFixed(1)} s, and ${(budget - used).toFixed(1)} s of the budget of ${budget} s were left for it; a budget of ${enough} s includes it`,
      { drifted: true, seconds, budget: enough },
    );
  }
  leftOut.sort(
    (a, b) => (a.budget ?? Number.MAX_VALUE) - (b.budget ?? Number.MAX_VALUE) || comparePlaces(a, b),
  );
  return { chosen, leftOut, seconds: used };
}
