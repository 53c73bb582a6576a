import { Argument, Command } from 'commander';
import { formatDuration } from '../../../html/index.js';
import type { Timed } from '../../../jobs/index.js';
import type { CheckResults } from '../../../training/index.js';
import { plural } from '../../../utils/plural.js';
import { withConnection } from '../../cli-connection.js';
import { outcomeOf, runJob } from '../../cli-run-job.js';
import {
  engineOption,
  type JobOptions,
  RAW_SOURCE_HELP,
  toFilterParams,
  withJobOptions,
} from '../../options/index.js';
import { logToStderr, noMatchHint, print, printJson, reportJobError } from '../../output/index.js';
import { checkSummary } from './check-command-summary.js';
import { trainHint } from './predict-command.js';

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
