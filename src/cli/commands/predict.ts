import { Command } from 'commander';
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

type PredictFlags = TargetOptions & FilterOptions & { engine?: string };

export function predictCommand(): Command {
  const command = new Command('predict')
    .description('make tiles of what trained models say: maps of NDVI and NDMI, places without cloud')
    .argument('<model>', 'ndvi, ndmi or cloud-removal for the model of each place; or the id of one model')
    .addOption(engineFlag());
  return withTarget(withResources(withFilter(command))).action(async (model: string, flags: PredictFlags) => {
    const source = model.startsWith('cloud-removal') ? 'cloud-free' : 'predicted';
    await runWrangle('predict', source, { model, filter: filterOf(flags), engine: flags.engine }, flags);
  });
}
