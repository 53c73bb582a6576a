/** Compares the cells on which the runs of a comparison trained. */
import { summariseReasons } from '../../training/index.js';
import type { ComparedRun, Comparison } from './compare-data.js';
import { cellScores, trainedCells } from './compare-measures.js';

type Runs = Pick<Comparison, 'runs'>;

const nameOf = ({ mode, seed }: ComparedRun) => `${mode}, seed ${seed}`;

/** Keys of the cells that all runs have trained. */
export function commonCells({ runs }: Runs): Set<string> {
  const all = runs.map(({ results }) => cellScores(results));
  const [first = new Map<string, unknown>(), ...others] = all;
  return new Set([...first.keys()].filter((key) => others.every((scores) => scores.has(key))));
}

/** Returns a function from the key of a cell to its name: the geocode, with the collection if the runs have several collections. */
export function cellLabels({ runs }: Runs): (key: string) => string {
  const collections = new Set(
    runs.flatMap(({ results }) => results.models.map(({ collection }) => collection)),
  );
  return (key) => (collections.size > 1 ? key : key.slice(key.indexOf(' ') + 1));
}

/** Describes in a sentence for each run how its cells and patches differ from those of the first run. Empty if there is no difference. */
export function describeDifferences(comparison: Runs): string[] {
  const [first, ...others] = comparison.runs;
  if (!first) return [];
  const name = cellLabels(comparison);
  const patchesOf = ({ results }: ComparedRun) =>
    new Map(trainedCells(results).map(({ key, patches }) => [key, patches]));
  const known = patchesOf(first);
  return others.flatMap((run) => {
    const own = patchesOf(run);
    const missing = [...known.keys()].filter((key) => !own.has(key));
    const added = [...own.keys()].filter((key) => !known.has(key));
    const changed = [...own.keys()].filter((key) => {
      const [before, now] = [known.get(key), own.get(key)];
      return before && now && (before.train !== now.train || before.validation !== now.validation);
    });
    const sentence = (how: string, keys: string[]) => {
      if (keys.length === 0) return [];
      const places = keys.length === 1 ? name(keys[0]!) : `${keys.length} places (such as ${name(keys[0]!)})`;
      return [`${nameOf(run)} ${how} ${places}`];
    };
    return [
      ...sentence(`did not train a place of ${nameOf(first)}:`, missing),
      ...sentence(`trained a place that ${nameOf(first)} did not:`, added),
      ...sentence(
        `has other patches than ${nameOf(first)}, because tiles were added or deleted, at`,
        changed,
      ),
    ];
  });
}

/** The reasons why cells have no model, from the first run of each mode, the most frequent first. */
export function excludedCellReasons({ runs, modes, model }: Comparison): string[] {
  const texts = modes.map((mode) => {
    const run = runs.find((one) => one.mode === mode);
    return { mode, reasons: run ? summariseReasons(run.results, [model]) : [] };
  });
  const isShared = texts.every(({ reasons }) => reasons.join() === texts[0]!.reasons.join());
  return isShared
    ? texts[0]!.reasons
    : texts.flatMap(({ mode, reasons }) => reasons.map((reason) => `${mode}: ${reason}`));
}

/** True if a cell failed in a run. */
export const hasFailedCells = ({ runs }: Runs) => runs.some(({ results }) => results.failed.length > 0);
