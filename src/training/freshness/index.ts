/**
 * Freshness of models: measures the model of each place on dates after its training, decides with a control chart if its error has grown,
 * and chooses the places that are worth a new training. Invariant: reads only; the decision is a pure function of the measurements of all
 * nodes. Imports files of a folder above, the folders `data`, `evaluation`, `models`, `registry` (types) and `texture` and the parts
 * `async`, `engines`, `grid` (types), `jobs` (types), `query` and `storage`.
 */
export { type CheckResults, checkProcess, checkResults } from './check-process.js';
export { chooseStale, type LeftOut } from './choose-stale.js';
export { judgePlaces, type PlaceFreshness } from './judge-places.js';
export { type CheckPart, measurePlaces } from './measure-places.js';
export { datesSinceChange } from './select-dates.js';
