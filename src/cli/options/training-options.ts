/** Options of the commands that train. */
import { type Command, InvalidArgumentError, type Option } from 'commander';
import type { FilterParams } from '../../query/index.js';
import {
  addOptions,
  createOption,
  type FilterOptions,
  parseBytesOption,
  parsePositiveIntegerOption,
  parseTimeOption,
  toFilterParams,
} from './option-groups.js';

/** Lists the names itself, so that help does not load src/training. */
export const TRAINING_MODE_NAMES = ['partitioned', 'distributed', 'contained', 'regional'];

/** The option of commands that load a training engine. Lists the names itself, so that help does not load src/engines. */
export const engineOption = (): Option =>
  createOption('--engine <name>', 'use this engine or fail').choices([
    'tfjs-node-gpu',
    'wasm-onednn',
    'wasm',
    'tfjs-node',
  ]);

export interface TrainingOptions {
  epochs?: number;
  patience?: number;
  validationFrom?: string;
  engine?: string;
  /** Memory limit of a process of the contained mode, bytes. */
  placeMemory?: number;
}

/** The inputs of the process `train` that follow from the options. */
export function toTrainingInputs(
  flags: FilterOptions & TrainingOptions,
): TrainingOptions & { filter: FilterParams } {
  const { epochs, patience, validationFrom, engine, placeMemory } = flags;
  return { filter: toFilterParams(flags), epochs, patience, validationFrom, engine, placeMemory };
}

export function withTrainingOptions(command: Command): Command {
  return addOptions(command, [
    createOption(
      '--epochs <n>',
      'passes over the training patches; default 30, for cloud-removal 12',
      parsePositiveIntegerOption,
    ),
    createOption(
      '--patience <n>',
      'stop a training if the loss on the selection patches has not improved for n epochs; the best epoch is always kept',
      parsePositiveIntegerOption,
    ),
    createOption(
      '--validation-from <time>',
      'hold out dates from this RFC 3339 time or date on; default: the last quarter of the tiles',
      parseTimeOption,
    ),
    engineOption(),
    createOption(
      '--place-memory <size>',
      'with --mode contained: memory limit of each process, 1MB or more; default 1GB, for cloud-removal 2GB',
      parsePlaceMemory,
    ),
  ]);
}

/** The minimum of the process `train`. */
const MIN_MEMORY_BYTES = 1e6;

function parsePlaceMemory(value: string): number {
  const size = parseBytesOption(value);
  if (size < MIN_MEMORY_BYTES) throw new InvalidArgumentError('It must be 1MB or more.');
  return size;
}
