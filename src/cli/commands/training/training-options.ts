/** Flags of the commands that train. */
import { type Command, InvalidArgumentError } from 'commander';
import { bytes, flag, instant, positiveInteger } from '../../options/option-groups.js';
import { engineFlag } from './engine-option.js';

/** The names of src/training, which is not loaded for help. */
export const MODES = ['partitioned', 'distributed', 'contained'];

export interface TrainingFlags {
  epochs?: number;
  patience?: number;
  validationFrom?: string;
  engine?: string;
  placeMemory?: number;
}

export function withTrainingFlags(command: Command): Command {
  return command
    .addOption(
      flag(
        '--epochs <n>',
        'passes over the training patches, by default 30, of cloud-removal 12',
        positiveInteger,
      ),
    )
    .addOption(
      flag(
        '--patience <n>',
        'stop a training if the loss on its selection patches has not improved for n epochs; the best epoch is kept in any case',
        positiveInteger,
      ),
    )
    .addOption(
      flag(
        '--validation-from <time>',
        'hold out dates from this time on, RFC 3339 or a date; default: the last quarter of the tiles',
        instant,
      ),
    )
    .addOption(engineFlag())
    .addOption(
      flag(
        '--place-memory <size>',
        'contained: memory that a process may take, 1MB or more; by default 1GB, of cloud-removal 2GB',
        placeMemory,
      ),
    );
}

/** The process `train` takes no less. */
const LEAST_MEMORY = 1e6;

function placeMemory(value: string): number {
  const size = bytes(value);
  if (size < LEAST_MEMORY) throw new InvalidArgumentError('It must be 1MB or more.');
  return size;
}
