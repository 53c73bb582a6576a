/** `tilewright info`: summaries of the store and of a collection, and the documents of tiles, models and jobs. */
import { Command } from 'commander';
import type { SceneSummary } from '../../client/index.js';
import { plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import { idNotFound } from '../errors.js';
import { type TargetOptions, withTarget } from '../options.js';
import { mergePartial, print, printJson, printTable, warningLines, warnPartial } from '../output.js';

export function infoCommand(): Command {
  const command = new Command('info')
    .description(
      'show a summary of the stored data; a collection with its scenes; or a tile, model or job as JSON',
    )
    .argument('[id]', 'id of a collection, tile, model or job');
  return withTarget(command).action(async (id: string | undefined, flags: TargetOptions) => {
    return withConnection(flags, async (target) => {
      if (id !== undefined) {
        const found = await target.client.find(id);
        if (!found) throw idNotFound(id);
        if (found.kind !== 'collection') return printJson(found.document);
        const scenes = await target.client.scenes(id);
        if (flags.format === 'json') return printJson({ ...(found.document as object), scenes });
        return printCollection(found.document as Collection, scenes);
      }
      const health = (await target.client.health()) as Record<string, string | number>;
      const { collections, ...described } = await target.client.collections();
      // In a cluster, /health counts only the tiles of one node.
      const { numberMatched: tiles, ...counted } = await target.client.search({ limit: 1 });
      const partly = mergePartial(described, counted);
      warnPartial(partly);
      if (flags.format === 'json') return printJson({ ...health, tiles, collections, ...partly });
      print(`${target.name}: node ${health.node}, tilewright ${health.version}`);
      print(
        `${plural(tiles, 'tile')}, ${plural(Number(health.scenes), 'scene')}, ${plural(Number(health.models), 'model')}`,
      );
      for (const collection of collections as Collection[])
        print(`collection ${collection.id}: ${cellsOf(collection)}`);
    });
  });
}

interface Collection {
  id: string;
  title: string;
  license: string;
  grid: string;
  precision: number;
  /** Pixel sizes of the collection, including those of bands that were not ingested. */
  pixel_sizes?: number[];
  /** By the names of band groups, which begin with their pixel size: 10m, 15m-nodata0. */
  item_assets?: Record<string, object>;
}

/** The grid, precision and pixel sizes of a collection. */
function cellsOf({ grid, precision, pixel_sizes: known = [], item_assets = {} }: Collection): string {
  const named = Object.keys(item_assets).map((name) => Number.parseFloat(name));
  // Sizes in names are rounded.
  const used = known.filter((size) => named.some((one) => Math.abs(one - size) < 0.1 * size));
  // Groups of derived tiles may have other names.
  const sizes = used.length > 0 ? used : known;
  const pixels = sizes.length > 0 ? `, pixels of ${sizes.join(', ')} m` : '';
  return `${grid} precision ${precision}${pixels}`;
}

function printCollection(collection: Collection, scenes: SceneSummary[]): void {
  const { id, title, license } = collection;
  print(`collection ${id}: ${title}, ${cellsOf(collection)}, license ${license}`);
  const rows = scenes.map((scene) => [scene.id, scene.datetime, scene.tiles]);
  if (rows.length > 0) printTable([['scene', 'time', 'tiles'], ...rows]);
  for (const line of warningLines(scenes)) print(`warning: ${line}`);
  print(plural(scenes.length, 'scene'));
}
