import { Command } from 'commander';
import { type TargetOptions, withTarget } from '../options.js';
import { count, print, printJson, table } from '../output.js';
import { openTarget } from '../target.js';
import { withModel } from './info.js';

export function modelsCommand(): Command {
  const command = new Command('models')
    .description('list trained models')
    .argument('[id]', 'show this model and its card');
  return withTarget(command).action(async (id: string | undefined, flags: TargetOptions) => {
    const target = await openTarget(flags);
    try {
      const models = (await target.client.models()) as ListedModel[];
      if (id !== undefined) return withModel(models, id, printJson);
      if (flags.format === 'json') return printJson({ models });
      const rows = models.map((model) => [
        model.id,
        new Date(model.createdAt).toISOString(),
        model.card.metrics.validation.mse.toPrecision(3),
        model.card.metrics.validation.r2.toFixed(3),
      ]);
      if (rows.length > 0)
        for (const line of table([['model', 'trained', 'MSE', 'R2'], ...rows])) print(line);
      print(count(models.length, 'model'));
    } finally {
      await target.close();
    }
  });
}

interface ListedModel {
  id: string;
  createdAt: number;
  card: { metrics: { validation: { mse: number; r2: number } } };
}
