/** `tilewright score`: a stored model on other labels, land or dates. */
import { Command, InvalidArgumentError } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { ScoreClassifierResults } from '../../hyperspectral/index.js';
import type { TileCounts, Timed } from '../../jobs/index.js';
import type { ScoreResults } from '../../training/index.js';
import { plural } from '../../utils/text.js';
import { runJob, withConnection } from '../connection.js';
import {
  addOptions,
  createOption,
  engineOption,
  type JobOptions,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import {
  formatMse,
  formatPercent,
  logToStderr,
  print,
  printJson,
  printTable,
  questionRows,
} from '../output.js';
import {
  accuracyText,
  intervalText,
  type LabelFlags,
  labelOptions,
  printClassAccuracy,
  readLabelsInput,
} from './analysis.js';

type ScoreFlags = JobOptions & LabelFlags & { version?: string; sample?: string; engine?: string };

export function scoreCommand(): Command {
  const command = new Command('score')
    .description('score a stored model on other land, dates or labels, without training or new tiles')
    .argument(
      '<model>',
      'id of a model of NDVI or NDMI, such as ndvi_sample_gu26xg; or with --labels of a classifier, such as classifier_enmap_gu33d',
      parseModelId,
    )
    .option('--version <version>', 'best, latest, or the name of a version (default: latest)');
  addOptions(command, [
    ...labelOptions(),
    createOption(
      '--sample <how>',
      'the labels are a probability sample of single pixels of the selected area (random), or of each class of the map (stratified); areas are then estimated',
    ).choices(['random', 'stratified']),
    engineOption(),
  ]);
  command.addHelpText(
    'after',
    '\nWithout --collection, the tiles are those of the collection of the model. Without --source and --filter, a model of NDVI or NDMI is scored on raw tiles.',
  );
  return withJobOptions(command).action(async (model: string, flags: ScoreFlags) =>
    withConnection(flags, async ({ client }) => {
      const { version, sample, engine } = flags;
      const isClassifier = model.startsWith('classifier_');
      if (!isClassifier && (flags.labels ?? flags.labelCollection ?? sample) !== undefined)
        command.error(
          `error: --labels, --label-collection and --sample go with the id of a classifier: leave them out, and ${model} is compared with measured pixels`,
        );
      const inputs = { model, version, engine, filter: toFilterParams(flags) };
      const run = async <R extends TileCounts>(
        name: string,
        more: object,
        show: (results: Timed<R>) => void,
      ) => {
        const { job, results } = await runJob('tiles', (hooks) =>
          client.run<R>(name, { ...inputs, ...more }, hooks),
        );
        if (results.failures > 0) process.exitCode = 3;
        if (flags.format === 'json') return printJson({ job, ...results });
        show(results);
        for (const text of results.warnings ?? []) logToStderr(`warning: ${text}`);
        for (const [reason, number] of Object.entries(results.skipped))
          logToStderr(`tiles skipped: ${number} (${reason})`);
        for (const { tile, message } of results.failed) logToStderr(`failed: ${tile}: ${message}`);
        print(`${plural(results.tiles, 'tile')} read, ${formatDuration(results.seconds)}`);
      };
      return isClassifier
        ? run('score-classifier', { labels: await readLabelsInput(flags), sample }, printClassScores)
        : run('score', {}, printErrors);
    }),
  );
}

function parseModelId(value: string): string {
  if (/^[a-z-]+_.+_[gq].*$/.test(value)) return value;
  throw new InvalidArgumentError('It must be the id of a model; "tilewright models" lists the ids.');
}

const MAX_LISTED_PLACES = 5;

function printErrors(results: Timed<ScoreResults>): void {
  const { measures, pooled, questions, places, trained, unit, values } = results;
  if (measures && pooled) {
    const rows = (['model', 'mean', 'history', 'nearest'] as const).map((name) => {
      const { mse, rmse, bias, mae, r2 } = measures[name];
      const { value, interval } = pooled.skill[name];
      const errors = [mse, rmse, bias, mae].map(formatMse);
      return [
        name,
        ...errors,
        r2.toFixed(3),
        name === 'mean' ? '' : value.toFixed(3) + intervalText(interval, (one) => one.toFixed(3)),
      ];
    });
    printTable([['', 'MSE', 'RMSE', 'bias', 'MAE', 'R2', 'skill'], ...rows]);
    printTable(questionRows(questions));
    const worst = places
      .slice(0, MAX_LISTED_PLACES)
      .map(({ place, rmse }) => `${place} (${formatMse(rmse)})`);
    print(`RMSE of a place: median ${formatMse(pooled.medianRmse)}; largest: ${worst.join(', ')}`);
    print(`${values} ${unit} at ${plural(pooled.places, 'place')} on ${plural(pooled.dates, 'date')}`);
  }
  if (trained.values > 0)
    print(
      `not scored: ${trained.values} ${unit} at ${plural(trained.places, 'place')} on ${plural(trained.dates, 'date')} that trained the model, or too near to such ground`,
    );
}

function printClassScores(results: Timed<ScoreClassifierResults>): void {
  const { classes, names, confusion, elsewhere, area, noArea } = results;
  printClassAccuracy(classes, names);
  print(accuracyText(results));
  if (elsewhere) print(`on ground that did not train the classifier: ${accuracyText(elsewhere)}`);
  print();
  printTable([
    ['label / map', ...names],
    ...confusion.map((row, c) => [names[c]!, ...row.map((count) => `${count}`)]),
  ]);
  print();
  if (area) printAreas(area);
  else print(`areas are not estimated: ${noArea}`);
}

function printAreas({ oa, oaError, classes }: NonNullable<ScoreClassifierResults['area']>): void {
  const km2 = (area: number) => area.toPrecision(4);
  const percent = (share: number, error: number) => `${formatPercent(share)} +- ${formatPercent(error)}`;
  const rows = classes.map(({ name, mapped, area, areaError, ...one }) => [
    name,
    km2(mapped),
    `${km2(area)} +- ${km2(areaError)}`,
    percent(one.users, one.usersError),
    percent(one.producers, one.producersError),
  ]);
  printTable([['class', 'km2 mapped', 'km2 estimated', "user's accuracy", "producer's accuracy"], ...rows]);
  print(`accuracy of the area ${percent(oa, oaError)} (standard errors)`);
}
