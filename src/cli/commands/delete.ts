import { Argument, Command } from 'commander';
import type { Client } from '../../client/index.js';
import { type TargetOptions, withTarget } from '../options.js';
import { count, print, printJson } from '../output.js';
import { openTarget } from '../target.js';

type Kind = 'tile' | 'scene' | 'collection';

export function deleteCommand(): Command {
  const command = new Command('delete')
    .description('delete a tile, a scene with its tiles, or a collection with its scenes and tiles')
    .addArgument(new Argument('<kind>', 'what the id names').choices(['tile', 'scene', 'collection']))
    .argument(
      '<id>',
      'a tile or a collection by its id, a scene as COLLECTION/SCENE; "info COLLECTION" lists scenes',
    )
    .addHelpText(
      'after',
      `
It asks nothing. Tiles made from deleted ones stay, and so do trained models. Ingest the scene again to
bring its tiles back. A scene that is being ingested cannot be deleted meanwhile.`,
    );
  return withTarget(command).action(async (kind: Kind, id: string, flags: TargetOptions) => {
    if (kind === 'scene' && !/^[^/]+\/[^/]+$/.test(id))
      command.error(`error: ${id} names no scene: write COLLECTION/SCENE`);
    const target = await openTarget(flags);
    try {
      const tiles = await remove(target.client, kind, id);
      if (flags.format === 'json') printJson({ deleted: kind, id, tiles });
      else print(`deleted ${kind} ${id}: ${count(tiles, 'tile')}`);
    } finally {
      await target.close();
    }
  });
}

/** The number of tiles that went. */
function remove(client: Client, kind: Kind, id: string): Promise<number> {
  if (kind === 'tile') return client.deleteTile(id);
  if (kind === 'collection') return client.deleteCollection(id);
  const [collection, scene] = id.split('/');
  return client.deleteScene(collection, scene);
}
