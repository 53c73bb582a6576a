/**
 * Scenes taken in by three nodes over a shared folder, by a cluster of one node over such a folder, by one without etcd over such
 * a folder, and by one with its own folder alone; all with as many workers.
 */

import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeCog } from '../../src/raster/index.js';
import { type BenchResult, median, result } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';
import { sceneFile } from '../support/scene.js';
import { ask, eventually, type Server } from './servers.js';

const SCENES = 6;
const MARK = 0.8;
/** CPU seconds per second of idle servers, and the time of the measurement. */
const IDLE = 0.1;
const LOOK = 1000;

export interface Side {
  /** Name as a peer. */
  name: string;
  servers: Server[];
  /** Its own, with all that they start. */
  pids: number[];
  /** Those of etcd among them. */
  etcd: number[];
}

/** All sides in turn, until all scenes are acknowledged. The first is ours; the last but one has the mark, being over a store as it is. */
export async function measureIngests(
  sides: Side[],
  { short, log }: { short: boolean; log: (line: string) => void },
): Promise<BenchResult[]> {
  const path = sceneFile(short ? 600 : 3000, log);
  const rounds = sides.map(() => ({
    wall: [] as number[],
    cpu: [] as number[],
    etcd: [] as number[],
    after: [] as number[],
  }));
  // The first scene starts the workers.
  for (const { servers, pids } of sides) {
    await ingest(servers, path, 'warm', servers.length);
    await settled(pids);
  }
  for (let round = 0; round < (short ? 1 : 5); round++)
    for (const [i, { servers, pids, etcd }] of sides.entries()) {
      const all = treeCpuSeconds(pids);
      const ofEtcd = treeCpuSeconds(etcd);
      const begun = performance.now();
      await ingest(servers, path, `round-${round}`, SCENES);
      const { wall, cpu, etcd: etcdCpu, after } = rounds[i]!;
      wall.push((performance.now() - begun) / 1e3);
      cpu.push((treeCpuSeconds(pids) - all) / SCENES);
      etcdCpu.push((treeCpuSeconds(etcd) - ofEtcd) / SCENES);
      after.push((await settled(pids)) / SCENES);
    }
  const [ours, ...peers] = rounds.map(({ wall, cpu, etcd, after }) => ({
    rate: SCENES / median(wall),
    cpu: median(cpu),
    etcd: median(etcd),
    after: median(after),
  })) as [Figures, ...Figures[]];
  const of = (figure: keyof Figures) =>
    Object.fromEntries(peers.map((peer, i) => [sides[i + 1]!.name, peer[figure]]));
  const title = `ingest of ${SCENES} scenes, ${sides[0]!.name}`;
  return [
    result(title, 'scenes/s', ours.rate, { ...of('rate'), mark: MARK * peers.at(-2)!.rate }),
    result(`${title}: CPU of all servers`, 's a scene', ours.cpu, of('cpu')),
    result(`${title}: CPU of etcd in it`, 's a scene', ours.etcd),
    result(`${title}: CPU afterwards, of copies to the owners`, 's a scene', ours.after),
  ];
}

interface Figures {
  rate: number;
  cpu: number;
  etcd: number;
  after: number;
}

/** Waits until processes do nothing more in the background, which would slow what is measured next; resolves to its CPU seconds. */
async function settled(pids: number[]): Promise<number> {
  const begun = treeCpuSeconds(pids);
  for (let before = begun; ; ) {
    await sleep(LOOK);
    const now = treeCpuSeconds(pids);
    if (now - before < (IDLE * LOOK) / 1000) return now - begun;
    before = now;
  }
}

async function ingest(servers: Server[], href: string, name: string, scenes: number): Promise<void> {
  const jobs = await Promise.all(
    Array.from({ length: scenes }, (_, i) =>
      startIngest(servers[i % servers.length]!, { href, id: `${name}-${i}`, day: 1 + i }),
    ),
  );
  for (const done of jobs) await done();
}

/** Resolves to what waits for the end of the job. */
export async function startIngest(
  server: Server,
  { href, id, day }: { href: string; id: string; day: number },
): Promise<() => Promise<void>> {
  const when = `2024-06-${String(day).padStart(2, '0')}T10:00:00Z`;
  const inputs = { href, id, datetime: when, collection: 'bench', scale: 0.0001 };
  const { jobID } = await ask<{ jobID: string }>(server, '/ingest', inputs);
  return async () => {
    await eventually(
      `${id} is taken in`,
      async () => {
        const { status } = await ask<{ status: string }>(server, `/jobs/${jobID}`);
        if (status === 'failed') throw new Error(`the ingest of ${href} has failed`);
        return status === 'successful';
      },
      { every: 100 },
    );
  };
}

/** A scene of a few tiles; its ingest measures the duration of a write. */
export async function smallScene(path: string): Promise<string> {
  const side = 200;
  const band = Uint16Array.from({ length: side * side }, (_, i) => 1000 + (i % 977));
  const file = encodeCog({
    ...{ width: side, height: side, dataType: 'uint16', bands: [band], epsg: 32633, nodata: 0 },
    transform: { originX: 499_980, originY: 5_000_040, pixelWidth: 10, pixelHeight: 10 },
    overviews: 'mean',
  });
  await writeFile(path, file);
  return path;
}
