import { Command } from 'commander';
import type { ImportProgress, ImportReport } from '../../../dht/index.js';
import { plural } from '../../../plural.js';
import { connect, hasDataFolder } from '../../connect.js';
import { noDataFolder } from '../../errors.js';
import { createOption, splitList, type TargetOptions, withTarget } from '../../options/option-groups.js';
import { formatBytes, logToStderr, print, printJson, progressLine } from '../../output/print.js';
import { resolveNode } from '../../resolve-node.js';
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
    .addOption(createOption('--store <url>', "the cluster's store of tile files"))
    .addOption(createOption('--etcd <urls>', "addresses of the cluster's etcd, separated by commas"))
    .addOption(createOption('--cluster-name <name>', 'name of the cluster in etcd').default('default'))
    .addOption(createOption('--dry-run', 'tell what would be moved, and move nothing'))
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
    return moveFolderIntoCluster({ ...flags, store, etcd });
  });
}

async function rejoin(name: string, flags: JoinFlags): Promise<void> {
  const target = await connect(flags);
  try {
    const id = resolveNode((await target.client.nodes()).nodes, name);
    const answer = await target.client.rejoin(id);
    if (flags.format === 'json') printJson(answer);
    else print(`node ${id} takes slots again`);
  } finally {
    await target.close();
  }
}

async function moveFolderIntoCluster(flags: JoinFlags & { store: string; etcd: string }): Promise<void> {
  const { data, store, etcd, clusterName, dryRun = false } = flags;
  if (!hasDataFolder(data)) throw noDataFolder(data);
  const signal = interruptSignal();
  const { EtcdStore } = await import('../../../coordination/index.js');
  const { importFolder } = await import('../../../dht/index.js');
  const { openObjectStore, requireDisjoint, Storage } = await import('../../../storage/index.js');
  await requireDisjoint(data, store);
  const storage = await Storage.open(data, { reserve: 0 });
  try {
    const objects = await openObjectStore(store);
    const coordination = new EtcdStore(splitList(etcd), clusterName);
    const line = progressLine('tiles');
    const onProgress = ({ done, total }: ImportProgress) =>
      line.update({
        message: '',
        progress: (100 * done) / total,
        tiles: { total, done, failed: 0, skipped: 0 },
      });
    try {
      const moved = await importFolder({ storage, objects, coordination, dryRun, signal, onProgress });
      line.end();
      if (flags.format === 'json') printJson(moved);
      else printMoved(moved, data);
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

function printMoved(
  { cluster, dryRun, scenes, tiles, models, bytes, kept, failed }: ImportReport,
  data: string,
): void {
  const what = [
    plural(scenes.moved, 'scene'),
    plural(tiles.moved, 'tile'),
    plural(models.moved, 'model'),
  ].join(', ');
  if (dryRun) print(`${what} of ${data} would be moved into cluster ${cluster}`);
  else print(`moved ${what} of ${data} into cluster ${cluster}: ${formatBytes(bytes)}`);
  const present = [
    plural(scenes.present, 'scene'),
    plural(tiles.present, 'tile'),
    plural(models.present, 'model'),
  ];
  if (scenes.present + tiles.present + models.present > 0) print(`there already: ${present.join(', ')}`);
  for (const name of kept) logToStderr(`${name}: the cluster has another version, which stays`);
  for (const { what, code, message } of failed) logToStderr(`${what}: ${message} [${code}]`);
}
