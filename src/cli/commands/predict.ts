/** `tilewright predict`, and the words for the models that have mapped the tiles. */
import { Command, InvalidArgumentError } from 'commander';
import type { PredictResults } from '../../training/index.js';
import { plural } from '../../utils/text.js';
import {
  engineOption,
  type JobOptions,
  RAW_SOURCE_HELP,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { formatMse, logToStderr, print } from '../output.js';
import { dilateOption, runDerive } from './derive.js';

type PredictFlags = JobOptions & {
  engine?: string;
  version?: string;
  onlyOwn?: boolean;
  evenIfWorse?: boolean;
  halo: boolean;
  dilate?: number;
};

export function predictCommand(): Command {
  const command = new Command('predict')
    .description(
      'apply trained models and store the results as tiles: maps of NDVI and NDMI, images without cloud, classes of spectra',
    )
    .argument(
      '<model>',
      'ndvi, ndmi or cloud-removal for the model of each place; or the id of one model, such as classifier_enmap_gu33d',
      parseModel,
    )
    .option('--version <version>', 'best, latest, or the name of a version (default: latest)')
    .addOption(engineOption())
    .option(
      '--only-own',
      'skip tiles whose places have no model of their own, instead of using the model of a similar place or of the region',
    )
    .option(
      '--even-if-worse',
      'also apply models that are worse than the mean of their training by their 95 % interval',
    )
    .addOption(dilateOption())
    .option('--no-halo', 'map each tile alone: faster, but with seams at the borders of tiles');
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withJobOptions(command).action(async (model: string, flags: PredictFlags) => {
    const source = model.startsWith('cloud-removal') ? 'cloud-free' : 'predicted';
    const { version, engine, onlyOwn, evenIfWorse, dilate, halo } = flags;
    const filter = toFilterParams(flags);
    const inputs = { model, version, filter, engine, onlyOwn, evenIfWorse, dilate, ...(!halo && { halo }) };
    const results = await runDerive<PredictResults>('predict', source, inputs, flags);
    const { tiles, unchanged, failures, skipped, worse = [], uses, partialHalos } = results;
    if (Object.keys(skipped).some((reason) => reason.endsWith(`have no model ${model}`)))
      logToStderr(trainHint(model));
    if (flags.format !== 'json' && uses && uses.cluster + uses.base > 0) {
      print(describeUses(uses));
      for (const line of describeFallbacks(results.fallbacks)) print(line);
    }
    if (partialHalos)
      logToStderr(
        `warning: ${plural(partialHalos, 'tile')} could not be blended with all neighbours, because nodes did not answer or models are damaged; run it again later`,
      );
    if (worse.length > 0) logToStderr(worseModelWarning(worse, version));
    // `train` has the same exit code if it trains no place.
    if (tiles + unchanged + failures === 0) process.exitCode = 1;
  });
}

export const trainHint = (model: string): string =>
  `run "tilewright train ${model}" with the same filter, to train models for places without one`;

/** Lists the names of models itself, so that help does not load src/training. */
function parseModel(value: string): string {
  if (/^((ndvi|ndmi|cloud-removal)(_.+_[gq].+)?|classifier_.+_[gq].+)$/.test(value)) return value;
  throw new InvalidArgumentError(
    'It must be ndvi, ndmi, cloud-removal, or the id of a model; "tilewright models" lists the ids.',
  );
}

function describeUses({ own, cluster, base }: NonNullable<PredictResults['uses']>): string {
  const by = (count: number, whose: string) => (count > 0 ? [`${count} by the model of ${whose}`] : []);
  const parts = [...by(own, 'their place'), ...by(cluster, 'a similar place'), ...by(base, 'the region')];
  return `${plural(own + cluster + base, 'tile')}: ${parts.join(', ')}`;
}

const MAX_LISTED_FALLBACKS = 5;

/** Lists the places without a model of their own by the model that maps them and the reason, the most frequent first. */
function describeFallbacks(fallbacks: PredictResults['fallbacks'] = []): string[] {
  const groups = new Map<string, { count: number; first: (typeof fallbacks)[number] }>();
  for (const one of fallbacks) {
    const key = `${one.model} ${one.reason}`;
    const known = groups.get(key);
    if (known) known.count++;
    else groups.set(key, { count: 1, first: one });
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count);
  const lines = sorted.slice(0, MAX_LISTED_FALLBACKS).map(({ count, first }) => {
    const { geocode, model, use, reason } = first;
    const places = count === 1 ? geocode : `${count} places (such as ${geocode})`;
    return `${places} mapped by ${model} of ${use === 'base' ? 'the region' : 'a similar place'}: ${reason}`;
  });
  const others = sorted.slice(MAX_LISTED_FALLBACKS).reduce((sum, { count }) => sum + count, 0);
  return others > 0 ? [...lines, plural(others, 'other place')] : lines;
}

const MAX_NAMED_MODELS = 5;

function worseModelWarning(worse: PredictResults['worse'], version?: string): string {
  const named = worse
    .slice(0, MAX_NAMED_MODELS)
    .map((one) => `${one.geocode} (MSE ${formatMse(one.mse)}, mean ${formatMse(one.mean)})`);
  const others =
    worse.length > MAX_NAMED_MODELS ? ` and ${plural(worse.length - MAX_NAMED_MODELS, 'other')}` : '';
  return (
    `warning: ${plural(worse.length, 'model')} used for these tiles did worse on validation patches than the mean of the training: ` +
    `${named.join(', ')}${others}; ${version === 'best' ? '' : '--version best may be better; otherwise '}train again with more dates, or delete the models and their tiles`
  );
}
