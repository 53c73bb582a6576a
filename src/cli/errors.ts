import { defineError } from '../errors.js';

export const noDataFolder = defineError(
  'TW_CLI_NO_DATA',
  404,
  'The command reads a data folder, and there is none.',
  (dir: string) =>
    `there is no data folder at ${dir}: ingest a scene first, or name the folder with --data DIR`,
);

export const idNotFound = defineError(
  'TW_CLI_NOT_FOUND',
  404,
  'Nothing in the store has this id.',
  (id: string) => `no collection, tile, model or job is called ${id}`,
);

export const notFolder = defineError(
  'TW_CLI_NOT_FOLDER',
  400,
  '`ingest --watch` takes folders. Name the folder into which the files come.',
  (path: string) => `${path} is no folder that can be read; --watch takes the folder into which files come`,
);

export const badPlaceArgument = defineError(
  'TW_CLI_PLACE',
  400,
  'The place of a series is neither longitude,latitude nor GeoJSON, as a file or as text.',
  (place: string, why: string) =>
    `"${place}" is no place (${why}): give longitude,latitude, or GeoJSON as a file or as text`,
);

export const ambiguousNode = defineError(
  'TW_CLI_NODE',
  400,
  'Several nodes have ids that begin like this. Write more of it, or the address.',
  (name: string, ids: string[]) =>
    `several nodes begin with ${name}: ${ids.join(', ')}; write more of the id`,
);

export const oneFileOnly = defineError(
  'TW_CLI_ONE_FILE',
  400,
  'A command made a file for each of several cells, and was told one file to write. Name a folder, or pick one cell.',
  (path: string, files: number) =>
    `there are ${files} files, one a cell, and ${path} is one file: name a folder, or pick one cell with --geocode`,
);

export const fileDescriptorLimitTooLow = defineError(
  'TW_CLI_DESCRIPTORS',
  500,
  'The process may open too few files: its limit of file descriptors is too low. Raise it with `ulimit -n`, `LimitNOFILE=` of systemd, or `--ulimit nofile=` of Docker. A server needs one more for each connection.',
  (limit: number, least: number) =>
    `this process may open ${limit} files, but needs at least ${least} file descriptors, and a server one more for each connection; raise the limit, such as by "ulimit -n 65536", LimitNOFILE= of systemd, or --ulimit nofile=65536 of Docker`,
);

export const cannotWrite = defineError(
  'TW_CLI_WRITE',
  400,
  'The place that a command was told to write to cannot be written. Name another, or see to its rights and to the space there.',
  (path: string, why: string) => `${path} cannot be written (${why}); name another place`,
);

export const noSuchTargets = defineError(
  'TW_CLI_TARGETS',
  400,
  'The spectral library has no spectrum of the name that `--targets` gives. The message lists names that it has.',
  (path: string, missing: string[], known: string[]) =>
    `${path} has no spectrum ${missing.map((name) => JSON.stringify(name)).join(', ')}; it has ${known.slice(0, 20).join(', ')}${known.length > 20 ? `, and ${known.length - 20} more` : ''}`,
);

export const labelsMissing = defineError(
  'TW_CLI_LABELS',
  400,
  'A classification takes labels either from a file or from a collection.',
  () => 'give either --labels FILE or --label-collection ID',
);

export const nodeUsageUnknown = defineError(
  'TW_CLI_USAGE',
  503,
  'A node does not report its usage, so modes cannot be compared. It does not answer, or it runs an older version.',
  (nodes: string[]) =>
    `${nodes.join(', ')} ${nodes.length === 1 ? 'does' : 'do'} not report what a training uses: no answer, or an older version; wait, or upgrade all nodes`,
);

export const comparisonStopped = defineError(
  'TW_CLI_COMPARE_STOPPED',
  499,
  'The user stopped a comparison. The training that ran was cancelled; those that had ended are in the report.',
  (ended: number, all: number, path: string) =>
    `stopped: ${ended} of ${all} runs had ended, and are in ${path}`,
);

export const noOutFolder = defineError(
  'TW_CLI_OUT',
  400,
  'The folder of --out cannot be created. Name a folder that is writable.',
  (path: string, why: string) =>
    `the folder ${path} for the report cannot be created (${why}): name another one with --out DIR`,
);
