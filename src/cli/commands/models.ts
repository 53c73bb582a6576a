import { Command } from 'commander';
import { notFound } from '../errors.js';
import { type TargetOptions, withTarget } from '../options.js';
import { count, print, printJson, table } from '../output.js';
import { openTarget } from '../target.js';

export function modelsCommand(): Command {
  const command = new Command('models')
    .description('list trained models')
    .argument('[id]', 'show this model and its card');
  return withTarget(command).action(async (id: string | undefined, flags: TargetOptions) => {
    const target = await openTarget(flags);
    try {
      if (id !== undefined) {
        const found = await target.client.find(id);
        if (found?.kind !== 'model') throw notFound(id);
        return printJson(found.document);
      }
      const models = (await target.client.models()) as ListedModel[];
      if (flags.format === 'json') return printJson({ models });
      const rows = models.map((model) => [
        model.id,
        new Date(model.createdAt).toISOString(),
        model.metrics.validation.mse.toPrecision(3),
        model.metrics.validation.r2.toFixed(3),
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
  metrics: { validation: { mse: number; r2: number } };
}
