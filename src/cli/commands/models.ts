import { Command } from 'commander';
import type { Metrics, ModelCard } from '../../training/index.js';
import { notFound } from '../errors.js';
import { type TargetOptions, withTarget } from '../options.js';
import { count, duration, imageMeasures, print, printJson, table } from '../output.js';
import { openTarget } from '../target.js';

export function modelsCommand(): Command {
  const command = new Command('models')
    .description('list trained models')
    .argument('[id]', 'show what is known of this model; with --format json its whole card');
  return withTarget(command).action(async (id: string | undefined, flags: TargetOptions) => {
    const target = await openTarget(flags);
    try {
      if (id !== undefined) {
        const found = await target.client.find(id);
        if (found?.kind !== 'model') throw notFound(id);
        if (flags.format === 'json') return printJson(found.document);
        return printModel(found.document as ModelDocument);
      }
      const models = (await target.client.models()) as ListedModel[];
      if (flags.format === 'json') return printJson({ models });
      const rows = models.map(({ id, geocode, createdAt, metrics, baseline }) => [
        id,
        geocode,
        new Date(createdAt).toISOString(),
        mse(metrics.validation.mse),
        metrics.validation.r2.toFixed(3),
        mse(baseline.linear.mse),
      ]);
      if (rows.length > 0)
        for (const line of table([['model', 'place', 'trained', 'MSE', 'R2', 'MSE linear'], ...rows]))
          print(line);
      print(count(models.length, 'model'));
    } finally {
      await target.close();
    }
  });
}

interface ListedModel {
  id: string;
  geocode: string;
  createdAt: number;
  metrics: { validation: { mse: number; r2: number } };
  baseline: { linear: { mse: number } };
}

interface ModelDocument {
  id: string;
  card: ModelCard;
}

const mse = (value: number) => value.toPrecision(3);

function printModel({ id, card }: ModelDocument): void {
  const { collection, grid, geocode, data, patches, engine, epochs, seed, seconds, parent } = card;
  const days = data.map(({ datetime }) => datetime.slice(0, 10)).sort();
  const facts = [
    ['model', id],
    ['place', `${geocode} (${grid}), collection ${collection}`],
    ['trained', `${card.createdAt}, ${count(epochs, 'epoch')} in ${duration(seconds)}, seed ${seed}`],
    ['engine', `${engine.name} ${engine.version}, tilewright ${card.softwareVersion}`],
    [
      'data',
      `${count(days.length, 'tile')} from ${days[0]} to ${days.at(-1)}, ${megabytes(card.bytesRead)} read`,
    ],
    ['patches', `${patches.train} for training, ${patches.validation} for validation`],
    ['split', card.split],
    ['began with', parent === null ? 'random weights' : `the weights of ${parent}`],
  ];
  for (const line of table(facts)) print(line);
  print();
  const { metrics, baseline } = card;
  const measured: [string, Metrics | undefined][] = [
    ['model', metrics.validation],
    ['linear regression', baseline.linear],
    ['mean of training', baseline.mean],
    ['the cloudy date as it is', baseline.unchanged],
    ['model, on its training patches', metrics.train],
  ];
  const titles = Object.keys(imageMeasures(metrics.validation));
  const rows = measured.flatMap(([name, one]) => {
    if (!one) return [];
    const ofImages = imageMeasures(one);
    return [[name, mse(one.mse), one.r2.toFixed(3), ...titles.map((title) => ofImages[title] ?? '')]];
  });
  for (const line of table([['on the validation patches', 'MSE', 'R2', ...titles], ...rows])) print(line);
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
