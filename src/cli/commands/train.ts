/** `tilewright train`. Invariant: help does not load `training`. */
import { Argument, Command, InvalidArgumentError } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { Timed } from '../../jobs/index.js';
import type { TrainResults } from '../../training/index.js';
import { comparePlaces } from '../../utils/bootstrap.js';
import { plural } from '../../utils/text.js';
import {
  type Connection,
  fetchAllPages,
  type Hooks,
  outcomeOf,
  runJob,
  withConnection,
} from '../connection.js';
import {
  addOptions,
  createOption,
  givenFlags,
  type JobOptions,
  parseIntegerOption,
  parseNumberOption,
  RAW_SOURCE_HELP,
  TRAINING_MODE_NAMES,
  type TrainingOptions,
  toFilterParams,
  toTrainingInputs,
  withJobOptions,
  withTrainingOptions,
} from '../options.js';
import {
  formatMse,
  heldOutSummary,
  imageMeasures,
  logToStderr,
  print,
  printJson,
  questionRows,
  reportJobError,
  servedSummary,
  table,
} from '../output.js';
import { kubernetesJob } from './train-kubernetes.js';

type Trained = TrainResults['models'][number];
type Scored = Pick<Trained, 'baseline' | 'parent' | 'adaptation'> & {
  metrics: Omit<Trained['metrics'], 'train'>;
  model?: string;
};

/** Marks models that are worse on their validation patches than the training mean. */
const WORSE_MARK = ' *';

/**
 * Returns no lines without models. Below a model of several places, each place has a row. With several models, the last row has their
 * pooled scores, if known.
 */
export function trainingTable(
  models: readonly Trained[],
  namesModels: boolean,
  pooled: TrainResults['pooled'],
): string[] {
  const isOfSeveral = new Set(models.map(({ collection }) => collection)).size > 1;
  const row = (place: string, scored: Scored, more: { collection?: string; took?: number } = {}) => {
    const { model, metrics, baseline, parent, adaptation } = scored;
    const { validation, tile } = metrics;
    return {
      ...(isOfSeveral && { collection: more.collection ?? '' }),
      place,
      ...(namesModels && { model }),
      ...(parent !== undefined && !adaptation && { from: parent.slice(parent.lastIndexOf('_') + 2) }),
      MSE: formatMse(validation.mse) + (validation.mse > baseline.mean.mse ? WORSE_MARK : ''),
      R2: validation.r2.toFixed(3),
      ...imageMeasures(validation),
      ...(tile?.msSsim && { 'tile MS-SSIM': imageMeasures(tile)['MS-SSIM'] }),
      ...(adaptation && adaptation.factor > 0 && { 'MSE base': formatMse(adaptation.errors.base.mse) }),
      ...(adaptation?.errors.fresh && { 'MSE fresh': formatMse(adaptation.errors.fresh.mse) }),
      'MSE linear': formatMse(baseline.linear.mse),
      'MSE mean': formatMse(baseline.mean.mse),
      ...(baseline.unchanged && { 'MSE cloudy': formatMse(baseline.unchanged.mse) }),
      ...(baseline.nearest && { 'MSE nearest': formatMse(baseline.nearest.mse) }),
      ...(baseline.median && { 'MSE median': formatMse(baseline.median.mse) }),
      ...(more.took !== undefined && { seconds: more.took.toFixed(1) }),
    };
  };
  const rows = models.flatMap((model) => [
    row(model.geocode, model, { collection: model.collection, took: model.seconds }),
    ...(model.distributed?.places ?? []).map((place) => row(`- ${place.geocode}`, place)),
  ]);
  if (rows.length === 0) return [];
  if (pooled && models.length > 1) {
    const { model: validation, tile, ...baseline } = pooled;
    rows.push(row('all places', { metrics: { validation, tile }, baseline }));
  }
  // The row with the most columns defines their order.
  const fullest = rows.toSorted((a, b) => Object.keys(b).length - Object.keys(a).length);
  const titles = [...new Set(fullest.flatMap(Object.keys))];
  const cells = rows.map((one) => titles.map((title) => (one as Record<string, string>)[title] ?? ''));
  const lines = table([titles, ...cells]);
  if (rows.some(({ MSE }) => MSE.endsWith(WORSE_MARK)))
    lines.push(
      `${WORSE_MARK.trim()} worse than the mean of the training; "tilewright predict" warns of such a model`,
    );
  return [...lines, ...servedSummary(models), ...adaptationSummary(models)];
}

/** An adapted model is named if its error is larger than that of its base times this factor. */
const WORSE_THAN_BASE = 1.1;
const MAX_NAMED_MODELS = 5;

/** Compares the models that were adapted from a base with it. */
function adaptationSummary(models: readonly Trained[]): string[] {
  const compared = models.flatMap(({ geocode, metrics, adaptation }) =>
    adaptation && adaptation.factor > 0 && adaptation.errors.base.mse > 0 && metrics.validation.mse > 0
      ? [{ geocode, ratio: metrics.validation.mse / adaptation.errors.base.mse }]
      : [],
  );
  if (compared.length === 0) return [];
  const worse = compared.filter(({ ratio }) => ratio > WORSE_THAN_BASE).sort((a, b) => b.ratio - a.ratio);
  const named = worse
    .slice(0, MAX_NAMED_MODELS)
    .map(({ geocode, ratio }) => `${geocode} (${ratio.toFixed(2)} times)`);
  const others =
    worse.length > MAX_NAMED_MODELS ? ` and ${plural(worse.length - MAX_NAMED_MODELS, 'other')}` : '';
  const { ratio, interval, better, places, verdict } = comparePlaces(
    new Map(compared.map(({ geocode, ratio }) => [geocode, [ratio]])),
    new Map(compared.map(({ geocode }) => [geocode, [1]])),
  );
  const range = interval ? `, 95 % interval ${interval.map((end) => end.toFixed(2)).join(' to ')}` : '';
  return [
    `adapted models: ${ratio!.toFixed(2)} of the error of the base (geometric mean${range}), better at ${better} of ${plural(places, 'place')}; verdict: ${verdict}`,
    ...(worse.length > 0
      ? [
          `warning: worse than the base on the validation patches: ${named.join(', ')}${others}; if such a model is deleted, "tilewright predict" maps its place with the base`,
        ]
      : []),
  ];
}

type TrainFlags = JobOptions &
  TrainingOptions & {
    mode?: string;
    seed?: number;
    transfer?: string;
    fineTuning?: string;
    representativesFirst?: boolean;
    base?: string;
    /** False with `--no-fresh`. */
    fresh?: boolean;
    /** Former name of `representativesFirst`. */
    curriculum?: boolean;
    stale?: boolean;
    budget?: number;
    here?: boolean;
    manifests?: boolean;
  };

export function trainCommand(): Command {
  const command = addOptions(
    new Command('train')
      .description('train a small model for each place that the filter selects')
      .addArgument(
        new Argument(
          '<models...>',
          'ndvi: mean NDVI of a patch from red, green and blue; ndmi: a map of NDMI from red, green and blue; cloud-removal: red, green and blue without cloud from a cloudy date; with several models, each place is read once',
        ).choices(['ndvi', 'ndmi', 'cloud-removal']),
      ),
    [
      createOption(
        '--mode <mode>',
        'partitioned: a model for each place; distributed: one model for all places, trained on all nodes; contained: a model for each place, in processes with limits; regional: one model for all places, which each place then adapts; default: regional for ndvi or ndmi alone, at several places of one collection without --transfer; else partitioned',
      ).choices(TRAINING_MODE_NAMES),
      createOption(
        '--seed <n>',
        'the same seed and engine give the same model; default 1',
        parseIntegerOption,
      ),
      createOption(
        '--transfer <policy>',
        'the model that each place starts from: no model (none, the default); the model of a random place of another cluster (random); the model of the most similar place of its cluster (similar); the candidate that is best on a few patches, which may be a fresh start (probe); "tilewright texture" computes the clusters',
      ).choices(['none', 'random', 'similar', 'probe']),
      createOption(
        '--fine-tuning <schedule>',
        'with --transfer, the layers that learn: all layers (all, the default); only the last layers (head); only the last layers for a third of the epochs, then all layers (gradual)',
      ).choices(['all', 'head', 'gradual']),
      createOption(
        '--representatives-first',
        'first train the most typical place of each cluster, then start the other places from these models',
      ),
      createOption('--curriculum', 'former name of --representatives-first').hideHelp(),
      createOption('--base <id>', 'regional: adapt this model instead of training one for all places'),
      createOption(
        '--no-fresh',
        'regional: do not also train a fresh model of each place, whose score the results compare',
      ),
      createOption(
        '--stale',
        'train only the places whose models have drifted, as "tilewright check" finds them; not with --mode distributed',
      ),
      createOption(
        '--budget <seconds>',
        'with --stale: limit of the sum of the seconds that the trainings of the places take, estimated from the last ones; the places with the largest gain for each second are trained; default: no limit',
        parseBudget,
      ),
      createOption(
        '--here',
        'with --mode contained: this machine, not the server, trains the single place that the filter selects; the server stores the model',
      ),
      createOption(
        '--manifests',
        'with --mode contained: only print Jobs for Kubernetes; each Job trains one model of one place',
      ),
    ],
  );
  command.addHelpText('after', RAW_SOURCE_HELP);
  withTrainingOptions(command);
  return withJobOptions(command).action(async (asked: string[], flags: TrainFlags) => {
    if (new Set(asked).size < asked.length) command.error('error: name each model once');
    const { here, manifests: listed, placeMemory, server } = flags;
    if (flags.mode !== 'contained' && (here || listed || placeMemory !== undefined))
      command.error('error: --place-memory, --here and --manifests go with --mode contained');
    if ((here || listed) && flags.transfer !== undefined)
      command.error(
        'error: --transfer works only for places that the server trains: leave out --here and --manifests',
      );
    const isShared = flags.mode === 'distributed' || flags.mode === 'regional';
    if (isShared && (flags.transfer ?? 'none') !== 'none')
      command.error(`error: --mode ${flags.mode} starts fresh: leave out --transfer`);
    if (isShared && asked.length > 1) command.error(`error: --mode ${flags.mode} trains one model: name one`);
    if ((flags.mode ?? 'regional') !== 'regional' && (flags.base !== undefined || flags.fresh === false))
      command.error('error: --base and --no-fresh go with --mode regional');
    if (flags.holdOut && flags.validationFrom !== undefined)
      command.error('error: --hold-out and --validation-from exclude each other');
    const curriculum = flags.representativesFirst || flags.curriculum;
    if ((flags.transfer ?? 'none') === 'none' && (curriculum || flags.fineTuning !== undefined))
      command.error(
        'error: --representatives-first and --fine-tuning go with --transfer similar, probe or random',
      );
    if (flags.budget !== undefined && !flags.stale) command.error('error: --budget goes with --stale');
    if (flags.stale && flags.mode === 'distributed')
      command.error(
        'error: --mode distributed trains one model for all places, so it cannot train only the drifted ones: use --stale with the mode regional, partitioned or contained',
      );
    if (flags.stale && (here || listed || asked.length > 1))
      command.error(
        'error: --stale trains one model, on the server: name one, without --here and --manifests',
      );
    if (listed && server === undefined)
      command.error('error: --manifests needs --server, the address at which the Jobs reach a node');
    if (here && listed) command.error('error: --here and --manifests exclude each other');
    if (here && asked.length > 1) command.error('error: --here trains one model: name one');
    return withConnection(flags, async (target) => {
      if (listed) return printJson(await manifests(target, asked, command));
      const { mode, seed, transfer, fineTuning, base, stale, budget } = flags;
      const { client } = target;
      const [model] = asked;
      const inputs = { ...toTrainingInputs(flags), seed };
      const train = async (hooks: Hooks) => {
        if (!here) {
          const fresh = flags.fresh === false ? false : undefined;
          const given = {
            model: asked.length > 1 ? asked : model,
            mode,
            transfer,
            fineTuning,
            curriculum,
            base,
            fresh,
            stale,
            budget,
          };
          return client.run<TrainResults>('train', { ...given, ...inputs }, hooks);
        }
        // This import loads the training code.
        const { trainLocally } = await import('./train-locally.js');
        return trainLocally(client, { model, ...inputs }, hooks);
      };
      const unit = asked.length > 1 ? 'models' : 'places';
      const { job, results, error } = await outcomeOf<TrainResults>(runJob(unit, train));
      if (flags.format === 'json') printJson({ job, ...results });
      // If the job failed without a model, the error says everything.
      else if (!error || results.models.length > 0 || results.checked)
        await printResults(results, asked, flags.budget);
      if (flags.format !== 'json') for (const text of results.warnings ?? []) logToStderr(`warning: ${text}`);
      if (error) reportJobError(error, flags);
      else if (results.failed.length > 0) process.exitCode = 3;
      // A distributed model has no place, so it is applied by its id.
      const names = new Set(results.models.map(({ id, model, distributed }) => (distributed ? id : model)));
      const trained = Array.from(names, (name) => `"tilewright predict ${name}"`);
      if (trained.length > 0)
        logToStderr(
          `"tilewright models" lists the models, ${trained.join(' and ')} ${trained.length > 1 ? 'apply' : 'applies'} them`,
        );
      if (trained.length > 0 && results.since !== undefined)
        logToStderr(
          `"tilewright predict" also makes the maps of older dates again with the new models; --datetime ${results.since.slice(0, 10)}/.. keeps those from before the change`,
        );
      if (results.models.length > 0 && results.basePlaces === 1)
        logToStderr(
          'warning: the base model knows only one place, so it may not fit others: select more places, or name another model with --base',
        );
    });
  });
}

/** Maximum number of places that are printed in one line. */
const MAX_NAMED_PLACES = 100;

function parseBudget(value: string): number {
  const seconds = parseNumberOption(value);
  if (seconds < 0) throw new InvalidArgumentError('It must be 0 or more.');
  return seconds;
}

/** Flags that select the tiles of a place and configure its training. */
const TRAINING_OPTION_NAMES = [
  'intersects',
  'bbox',
  'datetime',
  'minCloud',
  'maxCloud',
  'minCoverage',
  'source',
  'platform',
  'filter',
  'epochs',
  'patience',
  'seed',
  'engine',
  'placeMemory',
];

interface CellItem {
  collection: string;
  /** `grid:code`: GEOHASH-u2, QUADTILE-0123. */
  properties: { 'grid:code': string; datetime: string };
}

/** A Job for each selected place and each model that can be trained there. Each Job runs beside the node that owns the place. */
async function manifests({ client, name }: Connection, models: string[], command: Command): Promise<object> {
  const flags = command.opts<TrainFlags>();
  const shared = givenFlags(command, (name) => TRAINING_OPTION_NAMES.includes(name));
  // Training uses raw tiles by default.
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
  const { getModelSpec, summariseReasons, validationDate } = await import('../../training/index.js');
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
  {
    engine,
    models,
    skipped,
    failed,
    pooled,
    questions,
    checked,
    leftOut = [],
    estimatedSeconds,
    seconds,
  }: Timed<TrainResults>,
  asked: string[],
  budget?: number,
): Promise<void> {
  const { summariseReasons, describeTraffic } = await import('../../training/index.js');
  for (const line of trainingTable(models, asked.length > 1, pooled)) print(line);
  for (const line of [...table(questionRows(questions ?? [])), ...heldOutSummary({ models, pooled })])
    print(line);
  for (const { distributed } of models) if (distributed) print(describeTraffic(distributed));
  for (const reason of summariseReasons({ skipped, failed }, asked)) print(`no model for ${reason}`);
  const fresh = models.flatMap(({ geocode, model, transfer }) =>
    transfer?.fresh ? [{ geocode, model, reason: transfer.fresh }] : [],
  );
  for (const line of summariseReasons({ skipped: fresh, failed: [] }, asked, 'started with random weights'))
    print(line);
  const refused = models.flatMap(({ geocode, model, transfer }) =>
    (transfer?.fresh ? [] : (transfer?.refused ?? [])).map(({ reason }) => ({ geocode, model, reason })),
  );
  for (const line of summariseReasons({ skipped: refused, failed: [] }, asked, 'skipped a source model'))
    print(line);
  const overBudget = leftOut
    .filter(({ drifted }) => drifted)
    .map(({ geocode, budget }) => (budget === undefined ? geocode : `${geocode} (--budget ${budget})`));
  if (overBudget.length > 0) {
    const names = overBudget.slice(0, MAX_NAMED_PLACES).join(', ');
    const more =
      overBudget.length > MAX_NAMED_PLACES ? ` and ${overBudget.length - MAX_NAMED_PLACES} others` : '';
    print(`drifted, and not trained again within the budget: ${names}${more}`);
  }
  const others = leftOut.filter(({ drifted }) => !drifted);
  const kept = others.map(({ geocode, reason }) => ({ geocode, model: asked[0], reason }));
  for (const line of summariseReasons({ skipped: kept, failed: [] }, asked, 'not trained again')) print(line);
  if (estimatedSeconds) {
    const limit = budget === undefined ? '' : ` of the budget of ${budget} s`;
    print(`estimated duration of the trainings: ${estimatedSeconds.toFixed(1)} s${limit}`);
  }
  if (checked)
    print(`checked: ${checked.fresh} fresh, ${checked.drifted} drifted, ${checked.unknown} unknown`);
  const failing = failed.length > 0 ? `, ${failed.length} failed` : '';
  print(
    `${plural(models.length, 'model')} trained, ${skipped.length} skipped${failing}, engine ${engine}, ${formatDuration(seconds)}`,
  );
}
