/** Concurrent commits of several clients on one node and on three nodes, and the restart of a killed single node. */
import type { SceneRecord, TileRecord } from '../../src/storage/index.js';
import { COLLECTION, tilesOf, wholeRecords } from '../search/search-data.js';
import { type Figure, quantile } from './rounds.js';
import { ask, eventually, type Place, type Server, send, settled, startNode, stop } from './servers.js';
import { openWriter } from './writer.js';

const CLIENTS = 8;
const OWNERS = 2;

export async function measureLoad(
  place: Place,
  { nodes: names, short }: { nodes: string[]; short: boolean },
): Promise<Figure[]> {
  const scenes = short ? 40 : 400;
  const nodes = await Promise.all(names.map((name) => startNode(place, name, 1)));
  try {
    await settled(nodes, Math.min(OWNERS, nodes.length));
    await seedScenes(place, scenes);
    for (const node of nodes)
      await eventually('all tiles are found', async () => (await found(node)) === scenes);
    const title = `${names.length === 1 ? 'one node' : `${names.length} nodes`}, ${CLIENTS} clients`;
    const figures = await deleteScenes(nodes, scenes - 1, title);
    // With three nodes others answer; see `measureDeath`.
    if (nodes.length === 1) figures.push(await restart(place, nodes, 1));
    return figures;
  } finally {
    await Promise.all(nodes.map(({ child }) => stop(child)));
  }
}

/** Deletes all scenes but the last: each delete is one commit. */
async function deleteScenes(nodes: Server[], count: number, title: string): Promise<Figure[]> {
  const times: number[] = [];
  const left = Array.from({ length: count }, (_, n) => n);
  const begun = performance.now();
  const client = async (first: number) => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      const sent = performance.now();
      const node = nodes[(first + times.length) % nodes.length]!;
      await send(node, 'DELETE', `/collections/${COLLECTION.id}/scenes/${nameOf(n)}`);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
  const seconds = (performance.now() - begun) / 1e3;
  return [
    { name: `commits, ${title}`, unit: 'commits/s', value: count / seconds },
    { name: `commits, ${title}: p50`, unit: 'ms', value: quantile(times, 0.5) },
    { name: `commits, ${title}: p99`, unit: 'ms', value: quantile(times, 0.99) },
  ];
}

/** Time from the restart of a killed node to its first complete answer. Replaces the node in `nodes`. */
async function restart(place: Place, nodes: Server[], tiles: number): Promise<Figure> {
  await stop(nodes[0]!.child, 'SIGKILL');
  const begun = performance.now();
  nodes[0] = await startNode(place, 'node-a', 1);
  await eventually('it answers', async () => (await found(nodes[0]!)) === tiles);
  const value = (performance.now() - begun) / 1e3;
  return { name: 'a lone node is killed and started again: its slots answer after', unit: 's', value };
}

/** Tiles in a complete answer. */
async function found(node: Server): Promise<number | undefined> {
  const body = { limit: 1, collections: [COLLECTION.id] };
  const { numberMatched, partial } = await ask<{ numberMatched: number; partial?: boolean }>(
    node,
    '/search',
    body,
  );
  return partial ? undefined : numberMatched;
}

const nameOf = (n: number) => `load-${n}`;

/** One commit with scenes of one tile each, without files. */
async function seedScenes(place: Place, count: number): Promise<void> {
  const records = wholeRecords(tilesOf(1));
  const added: TileRecord[] = [];
  const scenes: SceneRecord[] = [];
  for (let n = 0; n < count; n++) {
    const like = records.next().value as TileRecord;
    const { geocode, grid, version, start, end, platform } = like;
    const scene = nameOf(n);
    added.push({ ...like, scene, id: `${COLLECTION.id}_${scene}_${grid[0]}${geocode}` });
    scenes.push({
      ...{ id: scene, collection: COLLECTION.id, version, start, end, platform },
      ...{ fingerprint: scene, geocodes: [geocode], warnings: [], committedAt: Date.now() },
    });
  }
  const writer = await openWriter(place);
  const claim = await writer.claims.lockShared();
  try {
    await claim.commit(async () => ({
      added,
      edits: [
        { table: 'collections', key: COLLECTION.id, record: COLLECTION },
        ...scenes.map((record) => ({
          ...{ table: 'scenes' as const, key: `${COLLECTION.id}/${record.id}`, record },
        })),
      ],
    }));
  } finally {
    await claim.release();
    await writer.close();
  }
}
