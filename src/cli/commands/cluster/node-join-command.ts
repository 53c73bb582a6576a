import { Command } from 'commander';
import type { ImportProgress, ImportReport } from '../../../dht/index.js';
import { plural } from '../../../utils/plural.js';
import { hasDataFolder, withConnection } from '../../cli-connection.js';
import { interruptSignal } from '../../cli-signals.js';
import { noDataFolder } from '../../errors.js';
import { addOptions, createOption, splitList, type TargetOptions, withTarget } from '../../options/index.js';
import { resolveNode } from '../../options/node-argument.js';
import { formatBytes, logToStderr, print, printJson, withProgressLine } from '../../output/index.js';

interface JoinFlags extends TargetOptions {
  etcd?: string;
  store?: string;
  clusterName: string;
  dryRun?: boolean;
}

export function joinCommand(): Command {
  const command = addOptions(
    new Command('join')
      .description(
        'stop draining a node, so that it receives slots again; or copy a data folder into a cluster',
      )
      .argument(
        '[node]',
        'the node: its id, the start of its id, or its address as in "node list"; without it, --data is copied into the cluster of --store',
      ),
    [
      createOption('--store <url>', "the cluster's object store"),
      createOption('--etcd <urls>', "addresses of the cluster's etcd, separated by commas"),
      createOption('--cluster-name <name>', 'name of the cluster in etcd').default('default'),
      createOption('--dry-run', 'report what would be copied, without copying'),
    ],
  ).addHelpText(
    'after',
    `
"node join ID --server URL" undoes "node drain ID".
"node join --data DIR --etcd URLS --store URL" copies the data of a single node: collections, scenes, derived
tiles and models, but not its jobs. No server may have the folder open. The folder does not change. After an
interruption, run the same command again: it skips what the cluster already has.`,
  );
  return withTarget(command).action(async (id: string | undefined, flags: JoinFlags) => {
    if (id !== undefined) return rejoin(id, flags);
    const { store, etcd } = flags;
    if (store === undefined || etcd === undefined)
      return command.error('error: name a drained node, or give --etcd and --store to copy --data there');
    return moveFolderIntoCluster({ ...flags, store, etcd });
  });
}

async function rejoin(name: string, flags: JoinFlags): Promise<void> {
  return withConnection(flags, async (target) => {
    const id = resolveNode((await target.client.nodes()).nodes, name);
    const answer = await target.client.rejoin(id);
    if (flags.format === 'json') printJson(answer);
    else print(`node ${id} now takes slots again`);
  });
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
    try {
      const moved = await withProgressLine('tiles', (line) => {
        const onProgress = ({ done, total }: ImportProgress) =>
          line.update({
            message: '',
            progress: (100 * done) / total,
            tiles: { total, done, failed: 0, skipped: 0 },
          });
        return importFolder({ storage, objects, coordination, dryRun, signal, onProgress });
      });
      if (flags.format === 'json') printJson(moved);
      else printMoved(moved, data);
      if (moved.failed.length > 0) process.exitCode = 3;
    } finally {
      await coordination.close();
      objects.close();
    }
  } finally {
    await storage.close();
  }
}

function printMoved(report: ImportReport, data: string): void {
  const { cluster, dryRun, scenes, tiles, models, bytes, kept, failed } = report;
  const listed = (kind: 'moved' | 'present') =>
    [plural(scenes[kind], 'scene'), plural(tiles[kind], 'tile'), plural(models[kind], 'model')].join(', ');
  const what = listed('moved');
  if (dryRun) print(`${what} of ${data} would be moved into cluster ${cluster}`);
  else print(`moved ${what} of ${data} into cluster ${cluster}: ${formatBytes(bytes)}`);
  if (scenes.present + tiles.present + models.present > 0) print(`already there: ${listed('present')}`);
  for (const name of kept) logToStderr(`${name}: the cluster has another version, which is kept`);
  for (const { what, code, message } of failed) logToStderr(`${what}: ${message} [${code}]`);
}
