import { Command } from 'commander';
import { grids } from '../../../grid/index.js';
import { type OpenTarget, openTarget } from '../../connect.js';
import {
  type CommonOptions,
  flag,
  listed,
  type TargetOptions,
  withCommon,
  withTarget,
} from '../../options/option-groups.js';
import { count, note, percent, print, printJson, size, table } from '../../output/print.js';
import { namedNode } from '../../resolve-node.js';
import { joinCommand } from './node-join.js';

export function nodeCommand(): Command {
  const command = new Command('node').description('the nodes of a cluster');

  const list = new Command('list').description('the nodes, and how many of the 16,384 slots each owns');
  command.addCommand(
    withTarget(list).action((flags: TargetOptions) =>
      at(flags, async ({ client }) => {
        const { nodes, asOf } = await client.nodes();
        if (flags.format === 'json') return printJson({ nodes, asOf });
        const rows = nodes.map(({ id, url, zone, slots, states, bytes, share, lag, running, draining }) => [
          id,
          url ?? '-',
          zone ?? '-',
          String(slots),
          states ? `${states.initializing}/${states.leaving}` : '-',
          bytes === undefined ? '-' : size(bytes),
          share === undefined ? '-' : percent(share),
          lag === undefined ? '-' : String(lag),
          `${running ? 'running' : 'away'}${draining ? ', draining' : ''}`,
        ]);
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
        for (const line of table([head, ...rows])) print(line);
        print(count(nodes.length, 'node'));
        if (asOf) print(`etcd does not answer; state as of ${asOf.slice(11, 19)} UTC`);
      }),
    ),
  );

  const locate = new Command('locate')
    .description('the nodes that hold the tiles of a cell')
    .argument('<geocode>', 'geohash or quadkey; or the id of a tile')
    .addOption(
      flag('--grid <grid>', 'grid of the geocode').choices(['geohash', 'quadtile']).default('geohash'),
    );
  command.addCommand(
    withTarget(locate).action((geocode: string, flags: TargetOptions & { grid: string }) =>
      at(flags, async ({ client }) => {
        const cell = cellOfTile(geocode) ?? { grid: flags.grid, geocode };
        const found = await client.locate(cell.grid, cell.geocode);
        if (flags.format === 'json') return printJson(found);
        print(found.slot === undefined ? found.geocode : `${found.geocode} is in slot ${found.slot}`);
        const { nodes } = await client.nodes();
        const rows = found.owners.map(({ node, state }) => {
          const { url = '-', running = false } = nodes.find(({ id }) => id === node) ?? {};
          return [`  ${node}`, url, running ? 'running' : 'away', state];
        });
        for (const line of table(rows)) print(line);
      }),
    ),
  );

  const drain = new Command('drain')
    .description('let a node give its slots to the others, so that it can be stopped for good')
    .argument('<node>', 'its id as in "node list", the begin of that, or its address');
  command.addCommand(
    withTarget(drain).action((name: string, flags: TargetOptions) =>
      at(flags, async ({ client }) => {
        const { nodes } = await client.nodes();
        const id = namedNode(nodes, name);
        const answer = await client.drain(id);
        if (nodes.filter((node) => node.id !== id && !node.draining).length === 1)
          note('warning: one node alone takes slots now: while it is away, nothing is answered for');
        if (flags.format === 'json') return printJson(answer);
        print(
          nodes.find((node) => node.id === id)?.running
            ? `node ${id} gives its slots to the others; when "node list" shows 0 slots for it, it may be stopped`
            : `node ${id} is away; the others load its slots from the store`,
        );
      }),
    ),
  );
  command.addCommand(joinCommand());

  const rebalance = new Command('rebalance')
    .description('spread the slots anew, so that each node holds its share of the bytes')
    .addOption(flag('--dry-run', 'tell what would move, and move nothing'));
  command.addCommand(
    withTarget(rebalance).action((flags: TargetOptions & { dryRun?: boolean }) =>
      at(flags, async ({ client }) => {
        const answer = await client.rebalance(flags.dryRun ?? false);
        if (flags.format === 'json') return printJson(answer);
        const { nodes, moved, least, deviation, dryRun } = answer;
        const rows = nodes.map(({ id, share, before, after, takes, gives }) => [
          id,
          percent(share),
          size(before.bytes),
          size(after.bytes),
          `${takes.slots} (${size(takes.bytes)})`,
          `${gives.slots} (${size(gives.bytes)})`,
        ]);
        const head = ['node', 'share', 'bytes now', 'bytes then', 'slots to take', 'slots to give'];
        for (const line of table([head, ...rows])) print(line);
        const what = `${count(moved.slots, 'slot')} of ${size(moved.bytes)}`;
        print(
          `${dryRun ? `${what} would move` : `${what} move`}; the least for the same result is ${size(least)}`,
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
  const command = new Command('restore')
    .description('rebuild what etcd knew of a cluster from its store, while no node runs')
    .addOption(
      flag(
        '--store <url>',
        'shared store of the cluster: s3://bucket/prefix or file:///folder',
      ).makeOptionMandatory(),
    )
    .addOption(
      flag(
        '--etcd <urls>',
        'addresses of an etcd without that cluster, separated by commas',
      ).makeOptionMandatory(),
    )
    .addOption(flag('--cluster-name <name>', 'name of the cluster in etcd').default('default'));
  return withCommon(command).action(async (flags: RestoreFlags) => {
    const { restoreCluster } = await import('../../../dht/index.js');
    const etcd = listed(flags.etcd);
    const onWait = (nodes: string[], patience: number) =>
      note(
        `nodes have not said that they stopped: ${nodes.join(', ')}; waits ${patience / 1000} s for a sign of them`,
      );
    const report = await restoreCluster({ store: flags.store, etcd, name: flags.clusterName, onWait });
    if (flags.format === 'json') return printJson(report);
    const { cluster, commits, checkpoint, collections } = report;
    print(
      `cluster ${cluster} is restored: ${count(commits, 'commit')}, of which a checkpoint holds ${checkpoint}`,
    );
    print(`${count(collections, 'collection')}; start the nodes, then run "tilewright node rebalance"`);
  });
}

/** The cell of `<collection>_<scene>_<cell>` or `..._<source>-<digest>`; undefined for what is no tile's id. */
function cellOfTile(id: string): { grid: string; geocode: string } | undefined {
  // The scene's id may have words that look like cells.
  const cells = id
    .split('_')
    .slice(2)
    .flatMap((word) => {
      const geocode = word.slice(1);
      const grid = grids.find(({ letter, accepts }) => letter === word[0] && accepts(geocode));
      return grid ? [{ grid: grid.name, geocode }] : [];
    });
  return cells.at(-1);
}

async function at(flags: TargetOptions, work: (target: OpenTarget) => Promise<void>): Promise<void> {
  const target = await openTarget(flags);
  try {
    await work(target);
  } finally {
    await target.close();
  }
}
