/** `tilewright score`: a stored model on other labels, land or dates. */
import { Command, InvalidArgumentError } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { ScoreResults } from '../../hyperspectral/index.js';
import type { Timed } from '../../jobs/index.js';
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
import { formatPercent, logToStderr, print, printJson, printTable } from '../output.js';
import {
  accuracyText,
  type LabelFlags,
  labelOptions,
  printClassAccuracy,
  readLabelsInput,
} from './analysis.js';

type ScoreFlags = JobOptions & LabelFlags & { version?: string; sample?: string; engine?: string };

export function scoreCommand(): Command {
  const command = new Command('score')
    .description('score a stored classifier on other labels, land or dates, without training or new tiles')
    .argument('<model>', 'id of a classifier, such as classifier_enmap_gu33d', parseClassifier)
    .option('--version <version>', 'best, latest, or the name of a version (default: latest)');
  addOptions(command, [
    ...labelOptions(),
    createOption(
      '--sample <how>',
      'the labels are a probability sample of single pixels of the selected area (random), or of each class of the map (stratified); areas are then estimated',
    ).choices(['random', 'stratified']),
    engineOption(),
  ]);
  return withJobOptions(command).action(async (model: string, flags: ScoreFlags) =>
    withConnection(flags, async ({ client }) => {
      const { version, sample, engine } = flags;
      const labels = await readLabelsInput(flags);
      const inputs = { model, version, labels, sample, engine, filter: toFilterParams(flags) };
      const { job, results } = await runJob('tiles', (hooks) =>
        client.run<ScoreResults>('score', inputs, hooks),
      );
      if (results.failures > 0) process.exitCode = 3;
      if (flags.format === 'json') return printJson({ job, ...results });
      printScores(results);
    }),
  );
}

function parseClassifier(value: string): string {
  if (/^classifier_.+_[gq].+$/.test(value)) return value;
  throw new InvalidArgumentError('It must be the id of a classifier; "tilewright models" lists the ids.');
}

function printScores(results: Timed<ScoreResults>): void {
  const { classes, names, confusion, elsewhere, area, noArea, skipped, failed, warnings } = results;
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
  for (const text of warnings) logToStderr(`warning: ${text}`);
  for (const [reason, number] of Object.entries(skipped)) logToStderr(`tiles skipped: ${number} (${reason})`);
  for (const { tile, message } of failed) logToStderr(`failed: ${tile}: ${message}`);
  print(`${plural(results.tiles, 'tile')} read, ${formatDuration(results.seconds)}`);
}

function printAreas({ oa, oaError, classes }: NonNullable<ScoreResults['area']>): void {
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
