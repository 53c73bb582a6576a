import { Command, InvalidArgumentError } from 'commander';
import { plural } from '../../../plural.js';
import type { PredictResults } from '../../../training/index.js';
import { engineOption } from '../../options/engine-option.js';
import {
  type FilterOptions,
  RAW_SOURCE_HELP,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { formatMse, logToStderr } from '../../output/print.js';
import { runDerive } from '../derive/run-derive.js';

type PredictFlags = TargetOptions & FilterOptions & { engine?: string; version?: string };

export function predictCommand(): Command {
  const command = new Command('predict')
    .description(
      'make tiles of what trained models say: maps of NDVI and NDMI, places without cloud, classes of spectra',
    )
    .argument(
      '<model>',
      'ndvi, ndmi or cloud-removal for the model of each place; or the id of one model, such as classifier_enmap_gu33d',
      parseModel,
    )
    .option('--version <version>', 'best, latest, or one version of the model by its name (default: latest)')
    .addOption(engineOption());
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withTarget(withResources(withFilterOptions(command))).action(
    async (model: string, flags: PredictFlags) => {
      const source = model.startsWith('cloud-removal') ? 'cloud-free' : 'predicted';
      const { version, engine } = flags;
      const inputs = { model, version, filter: toFilterParams(flags), engine };
      const results = await runDerive<PredictResults>('predict', source, inputs, flags);
      const { tiles, unchanged, failures, worse = [] } = results;
      if (worse.length > 0) logToStderr(worseModelWarning(worse, version));
      // As training does where no place can be trained on.
      if (tiles + unchanged + failures === 0) process.exitCode = 1;
    },
  );
}

/** The names are those of src/training, which is not loaded for help. */
function parseModel(value: string): string {
  if (/^((ndvi|ndmi|cloud-removal)(_.+_[gq].+)?|classifier_.+_[gq].+)$/.test(value)) return value;
  throw new InvalidArgumentError(
    'Give ndvi, ndmi or cloud-removal, or the id of a model; "tilewright models" lists those.',
  );
}

const MAX_NAMED_MODELS = 5;

function worseModelWarning(worse: PredictResults['worse'], version?: string): string {
  const named = worse
    .slice(0, MAX_NAMED_MODELS)
    .map((one) => `${one.geocode} (MSE ${formatMse(one.mse)}, mean ${formatMse(one.mean)})`);
  const others =
    worse.length > MAX_NAMED_MODELS ? ` and ${plural(worse.length - MAX_NAMED_MODELS, 'other')}` : '';
  return (
    `warning: ${plural(worse.length, 'model')} that made these tiles did worse on validation patches than the mean of the training: ` +
    `${named.join(', ')}${others}; ${version === 'best' ? '' : '--version best may be better, else '}train anew with more dates, or delete the models and their tiles`
  );
}
