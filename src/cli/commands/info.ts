import { Command } from 'commander';
import { notFound } from '../errors.js';
import { type TargetOptions, withTarget } from '../options.js';
import { count, print, printJson } from '../output.js';
import { openTarget } from '../target.js';

export function infoCommand(): Command {
  const command = new Command('info')
    .description('what the store holds, or one collection, tile, model or job as JSON')
    .argument('[id]', 'id of a collection, tile, model or job');
  return withTarget(command).action(async (id: string | undefined, flags: TargetOptions) => {
    const target = await openTarget(flags);
    try {
      if (id !== undefined) {
        const found = await target.client.find(id);
        if (!found) throw notFound(id);
        return printJson(found.document);
      }
      const health = (await target.client.health()) as Record<string, string | number>;
      const collections = await target.client.collections();
      if (flags.format === 'json') return printJson({ ...health, collections });
      print(`${target.name}: node ${health.node}, tilewright ${health.version}`);
      print(
        `${count(Number(health.tiles), 'tile')}, ${count(Number(health.scenes), 'scene')}, ${count(Number(health.models), 'model')}`,
      );
      for (const collection of collections) print(`collection ${collection.id}`);
    } finally {
      await target.close();
    }
  });
}
