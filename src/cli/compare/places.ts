/** The places that the runs of a comparison have trained on: figures of modes compare only on the same ones. */
import { reasonsOf } from '../../training/index.js';
import type { ComparedRun, Comparison } from './comparison.js';
import { type Scores, scoresOf, trainedPlaces } from './measures.js';

const nameOf = ({ mode, seed }: ComparedRun) => `${mode}, seed ${seed}`;

/** Scores of a run at the places that all runs have. */
export function commonScores({ runs }: Pick<Comparison, 'runs'>, run: ComparedRun): Scores {
  const all = runs.map(({ results }) => scoresOf(results));
  return new Map([...scoresOf(run.results)].filter(([place]) => all.every((scores) => scores.has(place))));
}

/** True if all runs have trained on the same places. */
export function haveSamePlaces({ runs }: Pick<Comparison, 'runs'>): boolean {
  const placesOf = ({ results }: ComparedRun) => [...scoresOf(results).keys()].sort().join(' ');
  return new Set(runs.map(placesOf)).size <= 1;
}

/** In a sentence each: where runs have trained on other places or other patches than the first one. Empty if all are alike. */
export function differencesOf({ runs }: Pick<Comparison, 'runs'>): string[] {
  const [first, ...others] = runs;
  if (!first) return [];
  const patchesOf = ({ results }: ComparedRun) =>
    new Map(trainedPlaces(results).map(({ name, patches }) => [name, patches]));
  const known = patchesOf(first);
  return others.flatMap((run) => {
    const own = patchesOf(run);
    const missing = [...known.keys()].filter((place) => !own.has(place));
    const added = [...own.keys()].filter((place) => !known.has(place));
    const changed = [...own].filter(([place, patches]) => {
      const before = known.get(place);
      return (
        before && patches && (before.train !== patches.train || before.validation !== patches.validation)
      );
    });
    const told = (what: string, places: string[]) =>
      places.length > 0
        ? [
            `${nameOf(run)} ${what} ${places.length === 1 ? places[0] : `${places.length} places, such as ${places[0]}`}`,
          ]
        : [];
    return [
      ...told(`has not trained what ${nameOf(first)} has:`, missing),
      ...told(`has trained what ${nameOf(first)} has not:`, added),
      ...told(
        `has other patches than ${nameOf(first)}, because tiles have come or gone, at`,
        changed.map(([place]) => place),
      ),
    ];
  });
}

/** Why places have no model, the most frequent reasons of each mode first. */
export function leftOut({ runs, modes, model }: Comparison): string[] {
  const texts = modes.map((mode) => {
    const run = runs.find((one) => one.mode === mode);
    return { mode, reasons: run ? reasonsOf(run.results, [model]) : [] };
  });
  const shared = texts.every(({ reasons }) => reasons.join() === texts[0]!.reasons.join());
  return shared
    ? texts[0]!.reasons
    : texts.flatMap(({ mode, reasons }) => reasons.map((reason) => `${mode}: ${reason}`));
}

/** True if a place failed in a run. */
export const hasFailedPlaces = ({ runs }: Pick<Comparison, 'runs'>) =>
  runs.some(({ results }) => results.failed.length > 0);
