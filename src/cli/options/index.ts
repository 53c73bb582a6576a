/**
 * Command-line options that commands share, with their environment variables and config file keys. Invariant: importing this loads neither
 * TensorFlow nor the node, so that help is fast. Imports the part `query`.
 */
export {
  addOptions,
  type CommonOptions,
  createOption,
  defaultResources,
  type FilterOptions,
  givenFlags,
  type JobOptions,
  optionValues,
  parseBytesOption,
  parseIntegerOption,
  parseJsonArgument,
  parseNumberOption,
  parsePortOption,
  parsePositiveIntegerOption,
  parseTimeOption,
  RAW_SOURCE_HELP,
  type ResourceOptions,
  splitBands,
  splitList,
  type TargetOptions,
  toFilterParams,
  withCloudModel,
  withCommon,
  withData,
  withFilterOptions,
  withJobOptions,
  withResources,
  withTarget,
} from './option-groups.js';
export {
  allowHostOption,
  appendList,
  remoteCredentialsOption,
  serverHostOption,
} from './remote-access-options.js';
export {
  engineOption,
  TRAINING_MODE_NAMES,
  type TrainingOptions,
  toTrainingInputs,
  withTrainingOptions,
} from './training-options.js';
