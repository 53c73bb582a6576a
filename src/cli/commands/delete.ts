import { Argument, Command } from 'commander';
import type { Client } from '../../client/index.js';
import { plural } from '../../plural.js';
import { connect } from '../connect.js';
import { type TargetOptions, withTarget } from '../options/option-groups.js';
import { print, printJson } from '../output/print.js';

type Kind = 'tile' | 'scene' | 'collection' | 'model';

type DeleteFlags = TargetOptions & { version?: string };

export function deleteCommand(): Command {
  const command = new Command('delete')
    .description('delete a tile, a scene with its tiles, a collection with its scenes and tiles, or a model')
    .addArgument(
      new Argument('<kind>', 'what the id names').choices(['tile', 'scene', 'collection', 'model']),
    )
    .argument(
      '<id>',
      'a tile, a collection or a model by its id, a scene as COLLECTION/SCENE; "info COLLECTION" lists scenes',
    )
    .option('--version <version>', 'of a model this version only; "models ID" lists them')
    .addHelpText(
      'after',
      `
It asks nothing. Tiles made from deleted ones or by deleted models stay, and so do models trained on deleted
tiles. Ingest the scene again to bring its tiles back. A scene that is being ingested cannot be deleted
meanwhile. A model goes with all its versions; without its latest version the one before it is the latest.`,
    );
  return withTarget(command).action(async (kind: Kind, id: string, flags: DeleteFlags) => {
    const { version } = flags;
    if (kind === 'scene' && !/^[^/]+\/[^/]+$/.test(id))
      command.error(`error: ${id} names no scene: write COLLECTION/SCENE`);
    if (kind !== 'model' && version !== undefined)
      command.error(`error: --version is of a model, and not of a ${kind}`);
    if (version === 'best' || version === 'latest')
      command.error(
        `error: what ${version} stands for may change before it is deleted: name the version, as "tilewright models ${id}" lists it`,
      );
    const target = await connect(flags);
    try {
      if (kind === 'model') {
        const versions = await target.client.deleteModel(id, version);
        if (flags.format === 'json') printJson({ deleted: kind, id, versions });
        else
          print(
            `deleted model ${id}: ${versions > 0 ? plural(versions, 'version') : 'its record was damaged, and its files stay as leftovers'}`,
          );
        return;
      }
      const tiles = await remove(target.client, kind, id);
      if (flags.format === 'json') printJson({ deleted: kind, id, tiles });
      else print(`deleted ${kind} ${id}: ${plural(tiles, 'tile')}`);
    } finally {
      await target.close();
    }
  });
}

/** The number of tiles that went. */
function remove(client: Client, kind: Exclude<Kind, 'model'>, id: string): Promise<number> {
  if (kind === 'tile') return client.deleteTile(id);
  if (kind === 'collection') return client.deleteCollection(id);
  const [collection, scene] = id.split('/');
  return client.deleteScene(collection, scene);
}
