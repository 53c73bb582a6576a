/** `tilewright delete`: deletes a tile, a scene, a collection or a model. */
import { Argument, Command } from 'commander';
import type { Client } from '../../client/index.js';
import { plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import { type TargetOptions, withTarget } from '../options.js';
import { print, printJson } from '../output.js';

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
    .option('--version <version>', 'delete only this version of a model; "models ID" lists the versions')
    .addHelpText(
      'after',
      `
The command does not ask for confirmation. Tiles derived from deleted tiles or by deleted models stay, and so do
models trained on deleted tiles. Ingest the scene again to restore its tiles. A scene cannot be deleted while it
is being ingested. Without --version, all versions of a model are deleted.`,
    );
  return withTarget(command).action(async (kind: Kind, id: string, flags: DeleteFlags) => {
    const { version } = flags;
    if (kind === 'scene' && !/^[^/]+\/[^/]+$/.test(id))
      command.error(`error: ${id} is not a scene: write COLLECTION/SCENE`);
    if (kind !== 'model' && version !== undefined)
      command.error(`error: --version goes with a model, not with a ${kind}`);
    if (version === 'best' || version === 'latest')
      command.error(
        `error: "${version}" may mean another version by the time of the deletion: name the version, as "tilewright models ${id}" lists it`,
      );
    return withConnection(flags, async (target) => {
      if (kind === 'model') {
        const versions = await target.client.deleteModel(id, version);
        if (flags.format === 'json') printJson({ deleted: kind, id, versions });
        else
          print(
            `deleted model ${id}: ${versions > 0 ? plural(versions, 'version') : 'its record was damaged, so its files stay on disk'}`,
          );
        return;
      }
      const tiles = await remove(target.client, kind, id);
      if (flags.format === 'json') printJson({ deleted: kind, id, tiles });
      else print(`deleted ${kind} ${id}: ${plural(tiles, 'tile')}`);
    });
  });
}

/** Returns the number of deleted tiles. */
function remove(client: Client, kind: Exclude<Kind, 'model'>, id: string): Promise<number> {
  if (kind === 'tile') return client.deleteTile(id);
  if (kind === 'collection') return client.deleteCollection(id);
  const [collection, scene] = id.split('/');
  return client.deleteScene(collection, scene);
}
