import { Command } from 'commander';
import type { MovedIn, MoveInProgress } from '../../../dht/index.js';
import { hasDataFolder, openTarget } from '../../connect.js';
import { noDataFolder } from '../../errors.js';
import { flag, listed, type TargetOptions, withTarget } from '../../options/option-groups.js';
import { count, note, print, printJson, progressLine, size } from '../../output/print.js';
import { namedNode } from '../../resolve-node.js';
import { interruptSignal } from '../../signals.js';

interface JoinFlags extends TargetOptions {
  etcd?: string;
  store?: string;
  clusterName: string;
  dryRun?: boolean;
}

export function joinCommand(): Command {
  const command = new Command('join')
    .description('let a node that was drained take slots again, or move a data folder into a cluster')
    .argument(
      '[node]',
      'the node: id, begin of the id, or address as in "node list"; without it, --data is moved into the cluster of --store',
    )
    .addOption(flag('--store <url>', "the cluster's store of tile files"))
    .addOption(flag('--etcd <urls>', "addresses of the cluster's etcd, separated by commas"))
    .addOption(flag('--cluster-name <name>', 'name of the cluster in etcd').default('default'))
    .addOption(flag('--dry-run', 'tell what would be moved, and move nothing'))
    .addHelpText(
      'after',
      `
"node join ID --server URL" undoes "node drain ID".
"node join --data DIR --etcd URLS --store URL" copies what a single node has stored: collections, scenes, derived
tiles and models; not its jobs. No server may have the folder open. The folder stays as it is. After an
interruption the same command goes on; what the cluster has already is passed over.`,
    );
  return withTarget(command).action(async (id: string | undefined, flags: JoinFlags) => {
    if (id !== undefined) return rejoin(id, flags);
    const { store, etcd } = flags;
    if (store === undefined || etcd === undefined)
      return command.error(
        'error: name a node that was drained, or give --etcd and --store to move --data there',
      );
    return move({ ...flags, store, etcd });
  });
}

async function rejoin(name: string, flags: JoinFlags): Promise<void> {
  const target = await openTarget(flags);
  try {
    const id = namedNode((await target.client.nodes()).nodes, name);
    const answer = await target.client.rejoin(id);
    if (flags.format === 'json') printJson(answer);
    else print(`node ${id} takes slots again`);
  } finally {
    await target.close();
  }
}

async function move(flags: JoinFlags & { store: string; etcd: string }): Promise<void> {
  const { data, store, etcd, clusterName, dryRun = false } = flags;
  if (!hasDataFolder(data)) throw noDataFolder(data);
  const signal = interruptSignal();
  const { EtcdStore } = await import('../../../coordination/index.js');
  const { moveIn } = await import('../../../dht/index.js');
  const { openObjectStore, requireApart, Storage } = await import('../../../storage/index.js');
  await requireApart(data, store);
  const storage = await Storage.open(data, { reserve: 0 });
  try {
    const objects = await openObjectStore(store);
    const coordination = new EtcdStore(listed(etcd), clusterName);
    const line = progressLine('tiles');
    const onProgress = ({ done, total }: MoveInProgress) =>
      line.update({
        message: '',
        progress: (100 * done) / total,
        tiles: { total, done, failed: 0, skipped: 0 },
      });
    try {
      const moved = await moveIn({ storage, objects, coordination, dryRun, signal, onProgress });
      line.end();
      if (flags.format === 'json') printJson(moved);
      else tell(moved, data);
      if (moved.failed.length > 0) process.exitCode = 3;
    } finally {
      line.end();
      await coordination.close();
      objects.close();
    }
  } finally {
    await storage.close();
  }
}

function tell({ cluster, dryRun, scenes, tiles, models, bytes, kept, failed }: MovedIn, data: string): void {
  const what = [count(scenes.moved, 'scene'), count(tiles.moved, 'tile'), count(models.moved, 'model')].join(
    ', ',
  );
  if (dryRun) print(`${what} of ${data} would be moved into cluster ${cluster}`);
  else print(`moved ${what} of ${data} into cluster ${cluster}: ${size(bytes)}`);
  const present = [
    count(scenes.present, 'scene'),
    count(tiles.present, 'tile'),
    count(models.present, 'model'),
  ];
  if (scenes.present + tiles.present + models.present > 0) print(`there already: ${present.join(', ')}`);
  for (const name of kept) note(`${name}: the cluster has another version, which stays`);
  for (const { what, code, message } of failed) note(`${what}: ${message} [${code}]`);
}
