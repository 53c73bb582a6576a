import { Command, InvalidArgumentError } from 'commander';
import {
  type FilterOptions,
  filterOf,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import { engineFlag } from './engine-flag.js';
import { runWrangle } from './wrangle.js';

type PredictFlags = TargetOptions & FilterOptions & { engine?: string; version?: string };

export function predictCommand(): Command {
  const command = new Command('predict')
    .description('make tiles of what trained models say: maps of NDVI and NDMI, places without cloud')
    .argument(
      '<model>',
      'ndvi, ndmi or cloud-removal for the model of each place; or the id of one model',
      parseModel,
    )
    .option('--version <version>', 'best, latest, or one version of the model by its name (default: latest)')
    .addOption(engineFlag());
  return withTarget(withResources(withFilter(command))).action(async (model: string, flags: PredictFlags) => {
    const source = model.startsWith('cloud-removal') ? 'cloud-free' : 'predicted';
    const { version, engine } = flags;
    await runWrangle('predict', source, { model, version, filter: filterOf(flags), engine }, flags);
  });
}

/** The names are those of src/training, which is not loaded for help. */
function parseModel(value: string): string {
  if (/^(ndvi|ndmi|cloud-removal)(_.+_[gq].+)?$/.test(value)) return value;
  throw new InvalidArgumentError(
    'Give ndvi, ndmi or cloud-removal, or the id of a model; "tilewright models" lists those.',
  );
}
