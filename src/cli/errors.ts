/** Errors of commands. */
import { defineError } from '../errors.js';

export const noDataFolder = defineError(
  'TW_CLI_NO_DATA',
  404,
  'The command reads a data folder, and the folder does not exist.',
  (dir: string) =>
    `there is no data folder at ${dir}: ingest a scene first, or name the folder with --data DIR`,
);

export const badConfigFile = defineError(
  'TW_CLI_CONFIG',
  400,
  'The file of `--config` cannot be read, is not a JSON object, has a key that is not the name of a flag, or a value that the flag does not accept.',
  (file: string, why: string) => `the config file ${file} cannot be used: ${why}`,
);

export const systemFailed = defineError(
  'TW_CLI_SYSTEM',
  500,
  'The operating system refused something that the command needs, such as a file. The message states what, and why.',
  (why: string) => `${why}; check the path, its permissions and the free disk space`,
);

export const internalError = defineError(
  'TW_CLI_INTERNAL',
  500,
  'The command failed for a reason that it does not expect. Report it with the output of the same command with TILEWRIGHT_DEBUG=1.',
  (why: string) =>
    `unexpected error: ${why}; run the command again with TILEWRIGHT_DEBUG=1 for details, and report it`,
);

export const idNotFound = defineError(
  'TW_CLI_NOT_FOUND',
  404,
  'No collection, tile, model or job has this id.',
  (id: string) => `no collection, tile, model or job has the id ${id}`,
);

export const notFolder = defineError(
  'TW_CLI_NOT_FOLDER',
  400,
  '`ingest --watch` needs readable folders. Name the folder in which new files appear.',
  (path: string) => `${path} is not a readable folder; --watch needs the folder in which new files appear`,
);

export const badPlaceArgument = defineError(
  'TW_CLI_PLACE',
  400,
  'The place of a series or spectrum is neither longitude,latitude nor GeoJSON, as a file or as text.',
  (place: string, why: string) =>
    `"${place}" is not a place (${why}): give longitude,latitude, or GeoJSON as a file or as text`,
);

export const ambiguousNode = defineError(
  'TW_CLI_NODE',
  400,
  'Several nodes have ids that begin with this text. Write more of the id, or use the address.',
  (name: string, ids: string[]) =>
    `several node ids begin with ${name}: ${ids.join(', ')}; write more of the id`,
);

export const oneFileOnly = defineError(
  'TW_CLI_ONE_FILE',
  400,
  'A command created a file for each of several cells, but the output is a single file. Name a folder, or select one cell.',
  (path: string, files: number) =>
    `there are ${files} files, one for each cell, and ${path} is a single file: name a folder, or select one cell with --geocode`,
);

export const fileDescriptorLimitTooLow = defineError(
  'TW_CLI_DESCRIPTORS',
  500,
  "The process's limit of open files is too low. Raise it with `ulimit -n`, `LimitNOFILE=` of systemd, or `--ulimit nofile=` of Docker. A server needs one more file descriptor for each connection.",
  (limit: number, least: number) =>
    `this process may open ${limit} files, but needs at least ${least} file descriptors, and a server one more for each connection; raise the limit, for example with "ulimit -n 65536", LimitNOFILE= of systemd, or --ulimit nofile=65536 of Docker`,
);

export const cannotWrite = defineError(
  'TW_CLI_WRITE',
  400,
  'The output path cannot be written. Name another path, or check its permissions and the free disk space.',
  (path: string, why: string) => `${path} cannot be written (${why}); name another path`,
);

export const noSuchTargets = defineError(
  'TW_CLI_TARGETS',
  400,
  'The spectral library has no spectrum with a name in `--targets`. The message lists the names in the library.',
  (path: string, missing: string[], known: string[]) =>
    `${path} has no spectrum ${missing.map((name) => JSON.stringify(name)).join(', ')}; it has ${known.slice(0, 20).join(', ')}${known.length > 20 ? `, and ${known.length - 20} more` : ''}`,
);

export const labelsMissing = defineError(
  'TW_CLI_LABELS',
  400,
  'A classification needs labels either from a file or from a collection.',
  () => 'give either --labels FILE or --label-collection ID',
);

export const nodeUsageUnknown = defineError(
  'TW_CLI_USAGE',
  503,
  'A node does not report its usage, so modes cannot be compared. It does not answer, or it runs an older version.',
  (nodes: string[]) =>
    `${nodes.join(', ')} ${nodes.length === 1 ? 'does' : 'do'} not report the resource usage: no answer, or an older version; wait, or upgrade all nodes`,
);

export const comparisonStopped = defineError(
  'TW_CLI_COMPARE_STOPPED',
  499,
  'The user stopped a comparison. The running training was cancelled; the report has the trainings that ended before.',
  (ended: number, all: number, path: string) =>
    `stopped: ${ended} of ${all} runs had ended and are in ${path}`,
);

export const noOutFolder = defineError(
  'TW_CLI_OUT',
  400,
  'The folder of --out cannot be created. Name a folder that is writable.',
  (path: string, why: string) =>
    `the folder ${path} for the report cannot be created (${why}): name another one with --out DIR`,
);

export const notItems = defineError(
  'TW_CLI_NOT_ITEMS',
  400,
  'The file of `--from-stac` cannot be read, is neither a STAC Item nor an ItemCollection, or has no Items or too many that match.',
  (path: string, why: string) => `${path} gives no STAC Items: ${why}`,
);
