import { Command } from 'commander';
import { grids } from '../../../grid/index.js';
import { plural } from '../../../utils/plural.js';
import { withConnection } from '../../cli-connection.js';
import {
  addOptions,
  type CommonOptions,
  createOption,
  splitList,
  type TargetOptions,
  withCommon,
  withTarget,
} from '../../options/index.js';
import { resolveNode } from '../../options/node-argument.js';
import { formatBytes, formatPercent, logToStderr, print, printJson, printTable } from '../../output/index.js';
import { joinCommand } from './node-join-command.js';

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
    const { restoreCluster } = await import('../../../dht/index.js');
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
