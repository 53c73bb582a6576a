/** `tilewright check`, and the summary of a check, which `ingest --check` prints too. */
import { Argument, Command } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { Timed } from '../../jobs/index.js';
import type { CheckResults } from '../../training/index.js';
import { plural, reasonKey } from '../../utils/text.js';
import { outcomeOf, runJob, withConnection } from '../connection.js';
import {
  engineOption,
  type JobOptions,
  RAW_SOURCE_HELP,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { formatMse, logToStderr, noMatchHint, print, printJson, reportJobError, table } from '../output.js';
import { trainHint } from './predict.js';

const MAX_LISTED_PLACES = 20;

/** Lists the places that have drifted, the reasons of those that are unknown, and the numbers of places. */
export function checkSummary({ fresh, drifted, unknown, without, places }: CheckResults): string[] {
  const rows = places.flatMap(({ status, geocode, firstDrifted = '', error, promised, ratio, dates }) =>
    status === 'drifted'
      ? [
          [
            geocode,
            firstDrifted.slice(0, 10),
            formatMse(error!),
            formatMse(promised!),
            ratio!.toFixed(1),
            `${dates}`,
          ],
        ]
      : [],
  );
  const listed = rows.slice(0, MAX_LISTED_PLACES);
  // Reasons that differ only in their numbers are one reason.
  const reasons = new Map<string, { reason: string; geocode: string; count: number }>();
  for (const { reason, geocode } of places) {
    if (reason === undefined) continue;
    const known = reasons.get(reasonKey(reason));
    if (known) known.count++;
    else reasons.set(reasonKey(reason), { reason, geocode, count: 1 });
  }
  return [
    ...(listed.length > 0
      ? table([['drifted', 'since', 'MSE now', 'MSE promised', 'ratio', 'dates'], ...listed])
      : []),
    ...(rows.length > MAX_LISTED_PLACES
      ? [`and ${plural(rows.length - MAX_LISTED_PLACES, 'other place')}`]
      : []),
    ...[...reasons.values()].map(
      ({ reason, geocode, count }) =>
        `unknown: ${count === 1 ? geocode : `${plural(count, 'place')} (such as ${geocode})`}: ${reason}`,
    ),
    `${plural(fresh + drifted + unknown, 'place')}: ${fresh} fresh, ${drifted} drifted, ${unknown} unknown${without > 0 ? `; ${without} without a model` : ''}`,
  ];
}

type CheckFlags = JobOptions & { engine?: string };

export function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'find the places whose models have larger errors on new dates than on those of their training',
    )
    .addArgument(
      new Argument('<model>', 'kind of model; the latest model of each place is checked').choices([
        'ndvi',
        'ndmi',
        'cloud-removal',
      ]),
    )
    .addOption(engineOption());
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withJobOptions(command).action(async (model: string, flags: CheckFlags) =>
    withConnection(flags, async ({ client }) => {
      const inputs = { model, filter: toFilterParams(flags), engine: flags.engine };
      const { job, results, error } = await outcomeOf<CheckResults>(
        runJob('places', (hooks) => client.run('check', inputs, hooks)),
      );
      if (flags.format === 'json') printJson({ job, ...results });
      else printResults(results);
      if (error) return reportJobError(error, flags);
      const { fresh, drifted, unknown, without } = results;
      if (drifted > 0)
        logToStderr(
          `"tilewright train ${model} --mode regional --stale" trains the drifted places again; give it the same filter`,
        );
      if (fresh + drifted + unknown > 0) {
        if (without > 0) logToStderr(trainHint(model));
        return;
      }
      logToStderr(
        without > 0
          ? `nothing to check: ${plural(without, 'place')} without a model ${model} of their own`
          : `nothing to check: no tile matches the filter. ${noMatchHint(flags)}`.trimEnd(),
      );
      if (without > 0) logToStderr(trainHint(model));
      // As for "predict".
      process.exitCode = 1;
    }),
  );
}

function printResults(results: Timed<CheckResults>): void {
  for (const line of checkSummary(results)) print(line);
  print(`checked in ${formatDuration(results.seconds)}`);
}
