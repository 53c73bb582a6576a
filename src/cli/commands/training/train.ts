import { Argument, Command } from 'commander';
import { formatDuration } from '../../../html/index.js';
import type { Timed } from '../../../jobs/index.js';
import { plural } from '../../../plural.js';
import type { TrainResults } from '../../../training/index.js';
import { type Connection, connect } from '../../connect.js';
import { fetchAllPages } from '../../fetch-all-pages.js';
import { outcomeOf } from '../../job-outcome.js';
import {
  createOption,
  type FilterOptions,
  parseIntegerOption,
  RAW_SOURCE_HELP,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import {
  TRAINING_MODE_NAMES,
  type TrainingOptions,
  withTrainingOptions,
} from '../../options/training-options.js';
import { logToStderr, noMatchHint, print, printJson, progressLine } from '../../output/print.js';
import { interruptSignal } from '../../signals.js';
import { kubernetesJob } from './kubernetes-jobs.js';
import { trainingTable } from './training-table.js';

type TrainFlags = TargetOptions &
  FilterOptions &
  TrainingOptions & {
    mode?: string;
    seed?: number;
    transfer?: string;
    fineTuning?: string;
    curriculum?: boolean;
    here?: boolean;
    manifests?: boolean;
  };

export function trainCommand(): Command {
  const command = new Command('train')
    .description('train a small model for each place that the filter picks')
    .addArgument(
      new Argument(
        '<models...>',
        'ndvi: mean NDVI of a patch from its red, green and blue; ndmi: a map of NDMI from the same; cloud-removal: red, green and blue without cloud from a cloudy date; of several, each place is read once',
      ).choices(['ndvi', 'ndmi', 'cloud-removal']),
    )
    .addOption(
      createOption(
        '--mode <mode>',
        'partitioned: a model for each place; distributed: one model for all, over all nodes; contained: a model for each place, in processes with limits',
      ).choices(TRAINING_MODE_NAMES),
    )
    .addOption(
      createOption('--seed <n>', 'same seed, same engine: same model; by default 1', parseIntegerOption),
    )
    .addOption(
      createOption(
        '--transfer <policy>',
        'whose model each place starts from: none (the default); random: of a place of another cluster; similar: of the most similar place of its cluster; probe: of some places, or fresh, whichever is best on a few of its patches; "tilewright texture" makes the clusters',
      ).choices(['none', 'random', 'similar', 'probe']),
    )
    .addOption(
      createOption(
        '--fine-tuning <schedule>',
        'of a model that starts from another: all layers learn (the default); head: the last ones alone; gradual: these alone for a third of the epochs, then all',
      ).choices(['all', 'head', 'gradual']),
    )
    .addOption(
      createOption(
        '--curriculum',
        'train the most typical place of each cluster first, and start the others from these models',
      ),
    )
    .addOption(
      createOption(
        '--here',
        'contained: train the one place that the filter picks on this machine, and have the server store the model',
      ),
    )
    .addOption(
      createOption(
        '--manifests',
        'contained: train nothing, print Jobs for Kubernetes that train one model of one place each',
      ),
    );
  command.addHelpText('after', RAW_SOURCE_HELP);
  withTrainingOptions(command);
  return withTarget(withResources(withFilterOptions(command))).action(
    async (asked: string[], flags: TrainFlags) => {
      if (new Set(asked).size < asked.length) command.error('error: name each model once');
      const { here, manifests: listed, placeMemory, server } = flags;
      if (flags.mode !== 'contained' && (here || listed || placeMemory !== undefined))
        command.error('error: --place-memory, --here and --manifests go with --mode contained');
      if ((here || listed) && flags.transfer !== undefined)
        command.error(
          'error: --transfer is for places that the server trains: leave out --here and --manifests',
        );
      if (flags.mode === 'distributed' && (flags.transfer ?? 'none') !== 'none')
        command.error('error: --mode distributed starts fresh: leave out --transfer');
      if (flags.mode === 'distributed' && asked.length > 1)
        command.error('error: --mode distributed trains one model: name one');
      if ((flags.transfer ?? 'none') === 'none' && (flags.curriculum || flags.fineTuning !== undefined))
        command.error('error: --curriculum and --fine-tuning go with --transfer similar, probe or random');
      if (listed && server === undefined)
        command.error('error: --manifests needs the address of a node, as the Jobs reach it: give --server');
      if (here && listed) command.error('error: --here trains, and --manifests does not: give one of them');
      if (here && asked.length > 1) command.error('error: --here trains one model: name one');
      const target = await connect(flags);
      const line = progressLine(asked.length > 1 ? 'models' : 'places');
      try {
        if (listed) return printJson(await manifests(target, asked, command));
        const { mode, epochs, patience, validationFrom, seed, engine, transfer, fineTuning, curriculum } =
          flags;
        const [model] = asked;
        const inputs = {
          ...{ filter: toFilterParams(flags), epochs, patience, validationFrom },
          ...{ seed, engine, placeMemory },
        };
        const hooks = { signal: interruptSignal(), onProgress: line.update };
        const { job, results, error } = await outcomeOf<TrainResults>(
          here
            ? // Loaded here, so that a command that trains nothing does not wait for it.
              (await import('./train-locally.js')).trainLocally(target.client, { model, ...inputs }, hooks)
            : target.client.run(
                'train',
                {
                  model: asked.length > 1 ? asked : model,
                  mode,
                  transfer,
                  fineTuning,
                  curriculum,
                  ...inputs,
                },
                hooks,
              ),
        );
        line.end();
        if (flags.format === 'json') printJson({ ...(job && { job }), ...results });
        // Where it has failed without a model, the error says all that there is.
        else if (!error || results.models.length > 0) await printResults(results, asked);
        if (error) {
          logToStderr(`error: ${error.message} [${error.code}]`);
          if (error.message.endsWith('no tile fits the filter') && noMatchHint(flags))
            logToStderr(noMatchHint(flags));
          process.exitCode = 1;
        } else if (results.failed.length > 0) process.exitCode = 3;
        // A model of many places is not that of any place.
        const trained = [
          ...new Set(
            results.models.map(
              ({ id, model, distributed }) => `"tilewright predict ${distributed ? id : model}"`,
            ),
          ),
        ];
        if (trained.length > 0)
          logToStderr(
            `"tilewright models" lists the models by their ids, ${trained.join(' and ')} ${trained.length > 1 ? 'apply' : 'applies'} them`,
          );
      } finally {
        line.end();
        await target.close();
      }
    },
  );
}

/** Flags that are not of a place, but say how it is trained. */
const TRAINING_OPTION_NAMES = [
  ...[
    'intersects',
    'bbox',
    'datetime',
    'minCloud',
    'maxCloud',
    'minCoverage',
    'source',
    'platform',
    'filter',
  ],
  ...['epochs', 'patience', 'seed', 'engine', 'placeMemory'],
];

interface CellItem {
  collection: string;
  /** `grid:code`: GEOHASH-u2, QUADTILE-0123. */
  properties: { 'grid:code': string; datetime: string };
}

/** A Job for each place that the filter picks and each model that can be trained there, each at the node that holds the place. */
async function manifests({ client, name }: Connection, models: string[], command: Command): Promise<object> {
  const flags = command.opts<TrainFlags>();
  const shared = command.options
    .filter((option) => TRAINING_OPTION_NAMES.includes(option.attributeName()))
    .flatMap((option): string[] => {
      const value = command.getOptionValue(option.attributeName());
      if (value === undefined) return [];
      return [option.long!, typeof value === 'object' ? JSON.stringify(value) : String(value)];
    });
  // Training takes raw tiles, unless another source is asked for.
  const source = flags.source ?? (flags.filter === undefined ? 'raw' : undefined);
  const { features } = await fetchAllPages((limit, token) =>
    client.search({ ...toFilterParams({ ...flags, source }), limit, token }),
  );
  const urls = new Map((await client.nodes()).nodes.map(({ id, url }) => [id, url]));
  const places = new Map<string, { collection: string; grid: string; geocode: string; times: number[] }>();
  for (const feature of features) {
    const { collection, properties } = feature as unknown as CellItem;
    const [grid, geocode] = properties['grid:code'].split('-') as [string, string];
    const key = `${collection} ${grid} ${geocode}`;
    const place = places.get(key) ?? { collection, grid: grid.toLowerCase(), geocode, times: [] };
    place.times.push(Date.parse(properties.datetime));
    places.set(key, place);
  }
  const { getModelSpec, summariseReasons, validationDate } = await import('../../../training/index.js');
  const from = validationDate([...places.values()].map(({ times }) => times));
  const heldOut = flags.validationFrom ?? (from !== undefined && new Date(from).toISOString());
  if (heldOut) shared.push('--validation-from', heldOut);
  const items: object[] = [];
  const skipped: TrainResults['skipped'] = [];
  for (const [, { collection, grid, geocode }] of [...places].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const filter = toFilterParams({ ...flags, collection: [collection], geocode, recurse: undefined });
    const unfit = (await client.checkPlace({ models, filter, ...(heldOut && { validationFrom: heldOut }) }))
      .skipped;
    skipped.push(...unfit.map((one) => ({ geocode, ...one })));
    const fit = models.filter((model) => !unfit.some((one) => one.model === model));
    if (fit.length === 0) continue;
    const [owner] = (await client.locate(grid, geocode)).owners;
    const server = (owner && urls.get(owner.node)) ?? name;
    for (const model of fit) {
      const memory = flags.placeMemory ?? getModelSpec(model).memoryPerCell;
      items.push(kubernetesJob({ model, collection, geocode, server, memory, flags: shared }));
    }
  }
  for (const reason of summariseReasons({ skipped, failed: [] }, models)) logToStderr(`no Job for ${reason}`);
  return { apiVersion: 'v1', kind: 'List', items };
}

async function printResults(
  { engine, models, skipped, failed, pooled, seconds }: Timed<TrainResults>,
  asked: string[],
): Promise<void> {
  const { summariseReasons, describeTraffic } = await import('../../../training/index.js');
  for (const line of trainingTable(models, asked.length > 1, pooled)) print(line);
  for (const { distributed } of models) if (distributed) print(describeTraffic(distributed));
  for (const reason of summariseReasons({ skipped, failed }, asked)) print(`no model for ${reason}`);
  const fresh = models.flatMap(({ geocode, model, transfer }) =>
    transfer?.fresh ? [{ geocode, model, reason: transfer.fresh }] : [],
  );
  for (const reason of summariseReasons({ skipped: fresh, failed: [] }, asked))
    print(`started fresh: ${reason}`);
  const refused = models.flatMap(({ geocode, model, transfer }) =>
    (transfer?.fresh ? [] : (transfer?.refused ?? [])).map(({ reason }) => ({ geocode, model, reason })),
  );
  for (const reason of summariseReasons({ skipped: refused, failed: [] }, asked))
    print(`a parent was passed over: ${reason}`);
  const failing = failed.length > 0 ? `, ${failed.length} failed` : '';
  print(
    `${plural(models.length, 'model')} trained, ${skipped.length} skipped${failing}, engine ${engine}, ${formatDuration(seconds)}`,
  );
}
