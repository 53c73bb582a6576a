/** `tilewright node`: lists, locates, adds, drains, rebalances and restores nodes. */
import { Command } from 'commander';
import type { ListedNode } from '../../client/index.js';
import type { ImportProgress, ImportReport } from '../../dht/index.js';
import { grids } from '../../grid/index.js';
import { plural } from '../../utils/text.js';
import { hasDataFolder, withConnection } from '../connection.js';
import { ambiguousNode, noDataFolder } from '../errors.js';
import {
  addOptions,
  type CommonOptions,
  createOption,
  splitList,
  type TargetOptions,
  withCommon,
  withTarget,
} from '../options.js';
import {
  formatBytes,
  formatPercent,
  logToStderr,
  print,
  printJson,
  printTable,
  withProgressLine,
} from '../output.js';
import { interruptSignal } from '../process.js';

/**
 * Returns the id of the node with this id, this address, or the only id that starts with `name`. An unknown name is returned unchanged,
 * and the server reports it. Throws TW_CLI_NODE.
 */
function resolveNode(nodes: readonly ListedNode[], name: string): string {
  const address = name.replace(/\/+$/, '');
  const exact = nodes.find(({ id, url }) => id === name || url === address || hostOf(url) === address);
  if (exact) return exact.id;
  const matches = nodes.filter(({ id }) => id.startsWith(name)).map(({ id }) => id);
  if (matches.length > 1) throw ambiguousNode(name, matches);
  return matches[0] ?? name;
}

const hostOf = (url: string | undefined) => url && new URL(url).host;

interface JoinFlags extends TargetOptions {
  etcd?: string;
  store?: string;
  clusterName: string;
  dryRun?: boolean;
}

function joinCommand(): Command {
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
  const { EtcdStore } = await import('../../coordination/index.js');
  const { importFolder } = await import('../../dht/index.js');
  const { openObjectStore, requireDisjoint, Storage } = await import('../../storage/index.js');
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

const SHOWN_OFFSET_SECONDS = 15;

export function nodeCommand(): Command {
  const command = new Command('node').description('the nodes of a cluster');

  const list = new Command('list').description('the nodes, and how many of the 16,384 slots each owns');
  command.addCommand(
    withTarget(list).action((flags: TargetOptions) =>
      withConnection(flags, async ({ client }) => {
        const { nodes, asOf } = await client.nodes();
        if (flags.format === 'json') return printJson({ nodes, asOf });
        const rows = nodes.map(
          ({ id, url, zone, slots, states, bytes, share, lag, clockOffset = 0, running, draining }) => [
            id,
            url ?? '-',
            zone ?? '-',
            String(slots),
            states ? `${states.initializing}/${states.leaving}` : '-',
            bytes === undefined ? '-' : formatBytes(bytes),
            share === undefined ? '-' : formatPercent(share),
            lag === undefined ? '-' : String(lag),
            `${running ? 'running' : 'away'}${draining ? ', draining' : ''}${clockText(clockOffset)}`,
          ],
        );
        const head = [
          'node',
          'address',
          'zone',
          'slots',
          'loading/leaving',
          'bytes',
          'target',
          'lag',
          'state',
        ];
        printTable([head, ...rows]);
        print(plural(nodes.length, 'node'));
        if (asOf) print(`etcd does not answer; state as of ${asOf.slice(11, 19)} UTC`);
      }),
    ),
  );

  const locate = new Command('locate')
    .description('the nodes that own the tiles of a cell')
    .argument('<geocode>', 'geohash, quadkey, or the id of a tile')
    .addOption(
      createOption('--grid <grid>', 'grid of the geocode')
        .choices(['geohash', 'quadtile'])
        .default('geohash'),
    );
  command.addCommand(
    withTarget(locate).action((geocode: string, flags: TargetOptions & { grid: string }) =>
      withConnection(flags, async ({ client }) => {
        const cell = cellOfTile(geocode) ?? { grid: flags.grid, geocode };
        const found = await client.locate(cell.grid, cell.geocode);
        if (flags.format === 'json') return printJson(found);
        print(found.slot === undefined ? found.geocode : `${found.geocode} is in slot ${found.slot}`);
        const { nodes } = await client.nodes();
        const rows = found.owners.map(({ node, state }) => {
          const { url = '-', running = false } = nodes.find(({ id }) => id === node) ?? {};
          return [`  ${node}`, url, running ? 'running' : 'away', state];
        });
        printTable(rows);
      }),
    ),
  );

  const drain = new Command('drain')
    .description('move the slots of a node to the other nodes, so that it can be stopped for good')
    .argument('<node>', 'its id as in "node list", the start of its id, or its address');
  command.addCommand(
    withTarget(drain).action((name: string, flags: TargetOptions) =>
      withConnection(flags, async ({ client }) => {
        const { nodes } = await client.nodes();
        const id = resolveNode(nodes, name);
        const answer = await client.drain(id);
        if (nodes.filter((node) => node.id !== id && !node.draining).length === 1)
          logToStderr('warning: only one node takes slots now: while it is away, no slot has an owner');
        if (flags.format === 'json') return printJson(answer);
        print(
          nodes.find((node) => node.id === id)?.running
            ? `node ${id} gives its slots to the others; stop it when "node list" shows 0 slots for it`
            : `node ${id} is away; the others load its slots from the object store`,
        );
      }),
    ),
  );
  command.addCommand(joinCommand());

  const rebalance = new Command('rebalance')
    .description('redistribute the slots, so that each node has its share of the bytes')
    .addOption(createOption('--dry-run', 'report what would move, without moving it'));
  command.addCommand(
    withTarget(rebalance).action((flags: TargetOptions & { dryRun?: boolean }) =>
      withConnection(flags, async ({ client }) => {
        const answer = await client.rebalance(flags.dryRun ?? false);
        if (flags.format === 'json') return printJson(answer);
        const { nodes, moved, least, deviation, dryRun } = answer;
        const rows = nodes.map(({ id, share, before, after, takes, gives }) => [
          id,
          formatPercent(share),
          formatBytes(before.bytes),
          formatBytes(after.bytes),
          `${takes.slots} (${formatBytes(takes.bytes)})`,
          `${gives.slots} (${formatBytes(gives.bytes)})`,
        ]);
        const head = ['node', 'share', 'bytes now', 'bytes then', 'slots to take', 'slots to give'];
        printTable([head, ...rows]);
        const what = `${plural(moved.slots, 'slot')} of ${formatBytes(moved.bytes)}`;
        print(
          `${dryRun ? `${what} would move` : `${what} move`}; the minimum for the same result is ${formatBytes(least)}`,
        );
        const { before, after } = deviation;
        print(
          `standard deviation from the shares: ${before.toFixed(2)} % before, ${after.toFixed(2)} % after`,
        );
      }),
    ),
  );
  command.addCommand(restoreCommand());
  return command;
}

interface RestoreFlags extends CommonOptions {
  store: string;
  etcd: string;
  clusterName: string;
}

function restoreCommand(): Command {
  const command = addOptions(
    new Command('restore').description(
      "rebuild a cluster's data in etcd from its object store, while no node runs",
    ),
    [
      createOption(
        '--store <url>',
        "the cluster's object store: s3://bucket/prefix or file:///folder",
      ).makeOptionMandatory(),
      createOption(
        '--etcd <urls>',
        'addresses of an etcd without this cluster, separated by commas',
      ).makeOptionMandatory(),
      createOption('--cluster-name <name>', 'name of the cluster in etcd').default('default'),
    ],
  );
  return withCommon(command).action(async (flags: RestoreFlags) => {
    const { restoreCluster } = await import('../../dht/index.js');
    const etcd = splitList(flags.etcd);
    const onWait = (nodes: string[], patience: number) =>
      logToStderr(
        `nodes that did not report their stop: ${nodes.join(', ')}; waiting ${patience / 1000} s for a sign of life`,
      );
    const report = await restoreCluster({ store: flags.store, etcd, name: flags.clusterName, onWait });
    logToStderr(
      'subscriptions are not in the store: create them again when the nodes run, from the output of "tilewright subscriptions --format json" that was saved before',
    );
    if (flags.format === 'json') return printJson(report);
    const { cluster, commits, checkpoint, collections } = report;
    print(
      `cluster ${cluster} is restored: ${plural(commits, 'commit')}, ${checkpoint} of them from a checkpoint`,
    );
    print(`${plural(collections, 'collection')}; start the nodes, then run "tilewright node rebalance"`);
  });
}

/** The cell in a tile id `<collection>_<scene>_<cell>` or `..._<source>-<digest>`; undefined for any other text. */
function cellOfTile(id: string): { grid: string; geocode: string } | undefined {
  // The scene's id may contain words that look like cells, so the last one counts.
  const cells = id
    .split('_')
    .slice(2)
    .flatMap((word) => {
      const geocode = word.slice(1);
      const grid = grids.find(({ idPrefix, accepts }) => idPrefix === word[0] && accepts(geocode));
      return grid ? [{ grid: grid.name, geocode }] : [];
    });
  return cells.at(-1);
}

/** Shows a clock that differs by more than the nodes expect (see `TilewrightClockOffset`). */
function clockText(offsetSeconds: number): string {
  if (Math.abs(offsetSeconds) < SHOWN_OFFSET_SECONDS) return '';
  return `, clock ${Math.round(Math.abs(offsetSeconds))} s ${offsetSeconds > 0 ? 'ahead' : 'behind'}`;
}
