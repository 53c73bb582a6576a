/** Duration of outages: a node is killed, and a node returns with an empty disk. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchResult, result } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { smallScene, startIngest } from './ingests.js';
import { ask, askBytes, eventually, type Place, type Server, startNode } from './servers.js';

const GAP_MARK = 3;
const LOAD_MARK = 10;
/** Duration of the measurement after the kill. */
const LOOK = 10_000;

interface Counted {
  numberMatched: number;
  partial?: boolean;
}

const count = (server: Server) =>
  ask<Counted>(server, '/search', { limit: 1, collections: ['sentinel-2-l2a'] });

/** The longest time without a whole answer, and without an acknowledged write, after `kill -9` of the last of these nodes. */
export async function measureDeath(place: Place, nodes: Server[], tiles: number): Promise<BenchResult[]> {
  const [asked, , victim] = nodes as [Server, Server, Server];
  const path = await smallScene(join(place.folder, 'small.tif'));
  const write = async (id: string) => (await startIngest(asked, { href: path, id, day: 1 }))();
  await write('before');
  const killed = performance.now();
  victim.child.kill('SIGKILL');
  const longest = async (work: (n: number) => Promise<boolean>) => {
    let last = killed;
    let most = 0;
    for (let n = 0; performance.now() - killed < LOOK; n++) {
      const isGood = await work(n).catch(() => false);
      const now = performance.now();
      most = Math.max(most, now - last);
      if (isGood) last = now;
      else await sleep(20);
    }
    return most / 1e3;
  };
  const [reads, writes] = await Promise.all([
    longest(async () => {
      const { numberMatched, partial } = await count(asked);
      return numberMatched === tiles && partial !== true;
    }),
    longest(async (n) => {
      await write(`after-${n}`);
      return true;
    }),
  ]);
  const title = 'one of three nodes is killed: longest time without';
  return [
    result(`${title} a whole answer`, 's', reads, { mark: GAP_MARK }),
    result(`${title} an acknowledged scene`, 's', writes, { mark: GAP_MARK }),
  ];
}

/** From the start of a node whose disk is empty, to its answer for the slots that it is given: a quarter of those of two owners each. */
export async function measureEmptyDisk(
  place: Place,
  name: string,
  tiles: number,
): Promise<{ results: BenchResult[]; node: Server }> {
  const begun = performance.now();
  const node = await startNode(place, name, 1);
  const since = () => (performance.now() - begun) / 1e3;
  await eventually('it answers', async () => (await count(node)).numberMatched === tiles);
  const answers = since();
  await eventually(
    'it has loaded its slots',
    async () => {
      const text = (await askBytes(node, '/metrics')).toString();
      const slots = (state: string) =>
        Number(new RegExp(`^tilewright_slots.*${state}"} (\\d+)`, 'm').exec(text)?.[1]);
      return slots('available') > 0 && slots('initializing') === 0;
    },
    { every: 250 },
  );
  const loaded = since();
  const cpu = treeCpuSeconds([node.child.pid!]);
  const held = (await ask<{ tiles: number }>(node, '/health')).tiles;
  const title = `a node starts with an empty disk, ${held} tiles in its slots`;
  return {
    node,
    results: [
      result(`${title}: first answer`, 's', answers, { mark: LOAD_MARK }),
      result(`${title}: it answers for its slots`, 's', loaded, { mark: LOAD_MARK }),
      result(`${title}: its CPU until then`, 's', cpu),
    ],
  };
}
