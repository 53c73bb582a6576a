/** Flags of the commands that train. */
import { type Command, InvalidArgumentError } from 'commander';
import { engineOption } from './engine-option.js';
import {
  createOption,
  parseBytesOption,
  parsePositiveIntegerOption,
  parseTimeOption,
} from './option-groups.js';

/** The names of src/training, which is not loaded for help. */
export const TRAINING_MODE_NAMES = ['partitioned', 'distributed', 'contained'];

export interface TrainingOptions {
  epochs?: number;
  patience?: number;
  validationFrom?: string;
  engine?: string;
  placeMemory?: number;
}

export function withTrainingOptions(command: Command): Command {
  return command
    .addOption(
      createOption(
        '--epochs <n>',
        'passes over the training patches, by default 30, of cloud-removal 12',
        parsePositiveIntegerOption,
      ),
    )
    .addOption(
      createOption(
        '--patience <n>',
        'stop a training if the loss on its selection patches has not improved for n epochs; the best epoch is kept in any case',
        parsePositiveIntegerOption,
      ),
    )
    .addOption(
      createOption(
        '--validation-from <time>',
        'hold out dates from this time on, RFC 3339 or a date; default: the last quarter of the tiles',
        parseTimeOption,
      ),
    )
    .addOption(engineOption())
    .addOption(
      createOption(
        '--place-memory <size>',
        'contained: memory that a process may take, 1MB or more; by default 1GB, of cloud-removal 2GB',
        parsePlaceMemory,
      ),
    );
}

/** The process `train` takes no less. */
const MIN_MEMORY_BYTES = 1e6;

function parsePlaceMemory(value: string): number {
  const size = parseBytesOption(value);
  if (size < MIN_MEMORY_BYTES) throw new InvalidArgumentError('It must be 1MB or more.');
  return size;
}
