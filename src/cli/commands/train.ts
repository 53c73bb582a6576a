import { Argument, Command } from 'commander';
import type { TrainResults } from '../../training/index.js';
import { interruptSignal } from '../interrupt.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  integer,
  positiveInteger,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import {
  count,
  duration,
  imageMeasures,
  NO_FIT,
  note,
  print,
  printJson,
  progressLine,
  table,
} from '../output.js';
import { orResults } from '../run-job.js';
import { openTarget } from '../target.js';
import { engineFlag } from './engine-flag.js';

type TrainFlags = TargetOptions &
  FilterOptions & { mode?: string; epochs?: number; seed?: number; engine?: string };

export function trainCommand(): Command {
  const command = new Command('train')
    .description('train a small model for each place that the filter picks')
    .addArgument(
      new Argument(
        '<model>',
        'ndvi: mean NDVI of a patch from its red, green and blue; ndmi: a map of NDMI from the same; cloud-removal: red, green and blue without cloud from a cloudy date',
      ).choices(['ndvi', 'ndmi', 'cloud-removal']),
    )
    .addOption(
      flag(
        '--mode <mode>',
        'partitioned: a model for each place; distributed: one model for all, over all nodes',
      ).choices(['partitioned', 'distributed']),
    )
    .addOption(flag('--epochs <n>', 'passes over the training patches', positiveInteger))
    .addOption(flag('--seed <n>', 'same seed, same engine: same model', integer))
    .addOption(engineFlag());
  return withTarget(withResources(withFilter(command))).action(async (model: string, flags: TrainFlags) => {
    const target = await openTarget(flags);
    const line = progressLine('places');
    try {
      const { mode, epochs, seed, engine } = flags;
      const { job, results, error } = await orResults<TrainResults>(
        target.client.run(
          'train',
          { model, mode, filter: filterOf(flags), epochs, seed, engine },
          { signal: interruptSignal(), onProgress: line.update },
        ),
      );
      line.end();
      if (flags.format === 'json') printJson({ ...(job && { job }), ...results });
      else await printResults(results);
      if (error) {
        note(`error: ${error.message} [${error.code}]`);
        if (error.message.endsWith('no tile fits the filter')) note(NO_FIT);
        process.exitCode = 1;
      } else if (results.failed.length > 0) process.exitCode = 3;
    } finally {
      line.end();
      await target.close();
    }
  });
}

async function printResults({ engine, models, skipped, failed, seconds }: TrainResults): Promise<void> {
  // Loaded here, so that a command that trains nothing does not wait for it.
  const { reasonsOf, trafficOf } = await import('../../training/index.js');
  const mse = (value: number) => value.toExponential(2);
  type Scored = Pick<TrainResults['models'][number], 'metrics' | 'baseline'>;
  const row = (place: string, { metrics: { validation }, baseline }: Scored, took?: number) => ({
    place,
    MSE: mse(validation.mse),
    R2: validation.r2.toFixed(3),
    ...imageMeasures(validation),
    'MSE linear': mse(baseline.linear.mse),
    'MSE mean': mse(baseline.mean.mse),
    ...(baseline.unchanged && { 'MSE cloudy': mse(baseline.unchanged.mse) }),
    ...(took !== undefined && { seconds: took.toFixed(1) }),
  });
  // Of one model for many places, each of these comes below it.
  const rows = models.flatMap((model) => [
    row(model.geocode, model, model.seconds),
    ...(model.distributed?.places ?? []).map((place) => row(`- ${place.geocode}`, place)),
  ]);
  if (rows.length > 0) {
    const titles = [...new Set(rows.flatMap(Object.keys))];
    const cells = rows.map((row) => titles.map((title) => (row as Record<string, string>)[title] ?? ''));
    for (const text of table([titles, ...cells])) print(text);
  }
  for (const { distributed } of models) if (distributed) print(trafficOf(distributed));
  for (const reason of reasonsOf({ skipped, failed })) print(`no model for ${reason}`);
  const failing = failed.length > 0 ? `, ${failed.length} failed` : '';
  print(
    `${count(models.length, 'model')} trained, ${skipped.length} skipped${failing}, engine ${engine}, ${duration(seconds)}`,
  );
}
