/**
 * A cluster that works for hours: writers, readers, derivations, an occasional training and prediction, checkpoints and garbage
 * collections. The number of scenes is bounded, so the resource usage of a node must be bounded, too.
 */
import { mkdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/errors.js';
import { awaitRecovery, problemsOfPlacement } from './await-recovery.js';
import { check, type Truth, type Violation } from './checkers.js';
import { Cleanups } from './cleanups.js';
import { TestCluster } from './cluster.js';
import { verifyCommits } from './commit-verifier.js';
import type { DerivedScenes } from './derived-scenes.js';
import { CheckpointAndGcLoad } from './gc-load.js';
import { History, type SceneState } from './history.js';
import { type NetworkKind, openNetwork } from './network/open.js';
import { Random } from './random.js';
import { readEverything } from './read-everything.js';
import { type Sample, sample } from './resource-usage.js';
import { keepRunning, untilQuiet } from './run-scenario.js';
import type { Deliveries } from './scene-deliveries.js';
import { svgOf } from './svg-curves.js';
import { judgeTrend, type Series, type TrendResult } from './trend.js';
import { Workload } from './workload.js';

const NODES = 3;
/** Interval between two samples, ms. */
const SAMPLE = 30_000;
/** Interval between the pauses of the clients, during which all rules are checked, ms. */
const WINDOW = 300_000;
const LIMIT = 300_000;
/** Clients start a step every 30 pauses: about one write and two searches a second, a quarter of what two cores can do. */
const PACE = 30;
/**
 * Cache of a node. A node keeps files of tiles that it does not own, and of their earlier versions, until the cache is full; without a
 * limit the number of files would grow as long as the disk has space.
 */
const CACHE = '30MB';
/** The log of a server is truncated when it is larger, bytes. */
const MOST_LOG = 50e6;

/**
 * Growth over the judged time that counts as none, by the end of the column name. Data of jobs that is kept for a week is recorded and not
 * judged; neither is the database of etcd, which keeps its history.
 */
const TOLERANCES: Record<string, Series['tolerance']> = {
  'RSS MB': { share: 0.1, absolute: 20 },
  descriptors: { share: 0.1, absolute: 10 },
  threads: { share: 0.1, absolute: 3 },
  files: { share: 0.1, absolute: 50 },
  'files MB': { share: 0.1, absolute: 20 },
  'etcd keys': { share: 0.1, absolute: 20 },
  'store objects': { share: 0.1, absolute: 100 },
};

export interface SoakSettings {
  hours: number;
  seed: number;
  /** Where data goes; `kept` is for the samples, the curves, and what was broken. */
  folder: string;
  kept: string;
  deliveries: Deliveries;
  layers: DerivedScenes;
  scenes: string;
  network: NetworkKind;
  log: (line: string) => void;
}

export interface SoakResult {
  violations: Violation[];
  flatness: TrendResult[];
}

export async function soak(settings: SoakSettings): Promise<SoakResult> {
  const { folder, kept, scenes, seed, log } = settings;
  const cleanups = new Cleanups();
  const violations: Violation[] = [];
  const samples = new Samples();
  await mkdir(kept, { recursive: true });
  try {
    const network = await openNetwork(settings.network);
    cleanups.after(() => network.close());
    const cluster = await TestCluster.start(
      {
        folder,
        scenes,
        network,
        history: new History(),
        nodes: NODES,
        etcdServers: 1,
        proxiesEtcd: false,
        agesEtcd: false,
        diskMegabytes: undefined,
        cache: CACHE,
      },
      cleanups,
    );
    await awaitRecovery(cluster, LIMIT);
    cluster.isSteady = true;
    const stopSampling = samples.start(cluster, kept);
    cleanups.after(stopSampling);
    await work(cluster, settings, new Random(seed), violations);
    await stopSampling();
    violations.push(...(await problemsOfPlacement(cluster)), ...(await verifyCommits(cluster)));
  } catch (error) {
    violations.push({ rule: 'heals', detail: messageOf(error), events: [] });
  } finally {
    await cleanups.run();
  }
  await samples.save(kept);
  await writeFile(join(kept, 'violations.json'), JSON.stringify(violations, null, 1));
  log(`samples, curves and what was broken: ${kept}`);
  return { violations, flatness: samples.judge() };
}

/** Clients work in windows; after each window all rules are checked. */
async function work(
  cluster: TestCluster,
  { hours, deliveries, layers, log }: SoakSettings,
  random: Random,
  violations: Violation[],
): Promise<void> {
  const truth: Truth = {
    sizeOf: (scene, delivery) => deliveries.tilesOf(scene, delivery).size,
    filesOf: (scene, delivery) => layers.splitOf(scene, delivery),
  };
  const end = performance.now() + hours * 3_600_000;
  const window = Math.min(WINDOW, (hours * 3_600_000) / 2);
  let states: ReadonlyMap<string, SceneState> | undefined;
  for (let n = 1; performance.now() < end; n++) {
    // The history of hours would not be bounded.
    const history = new History();
    cluster.settings.history = history;
    const setting = { cluster, deliveries, layers, history };
    const workload = new Workload(setting, random.fork(`window ${n}`), { pace: PACE });
    if (states) workload.resume(states);
    else await workload.seed();
    const upkeep = new CheckpointAndGcLoad(cluster, random.fork(`upkeep ${n}`));
    workload.start();
    await sleep(Math.max(0, Math.min(window, end - performance.now())));
    await workload.stop();
    await upkeep.stop();
    await untilQuiet(setting, workload, LIMIT);
    const healed = history.now();
    const found = [...(await readEverything(setting, true)), ...check(history, healed, truth)];
    found.push(...keepRunning(cluster.nodes));
    for (const { rule, detail } of found) log(`     broken: ${rule}: ${detail.slice(0, 400)}`);
    violations.push(...found);
    const writes = history.of('write').length;
    const runs = history.of('upkeep').length;
    log(
      `window ${n}: ${writes} writes, ${history.of('read').length} searches, ${history.of('work').length} derivations, ${runs} checkpoints and sweeps; ${found.length} violations`,
    );
    states = statesOf(history);
    for (const { name } of cluster.nodes) await shorten(join(cluster.settings.folder, `${name}.log`));
  }
}

/** The states of all scenes in the last answers. */
function statesOf(history: History): Map<string, SceneState> {
  const states = new Map<string, SceneState>();
  for (const [scene, seen] of Object.entries(history.of('read').at(-1)!.scenes))
    if (typeof seen !== 'object') states.set(scene, seen);
  for (const [scene, { delivery }] of Object.entries(history.of('derived').at(-1)?.scenes ?? {}))
    states.set(scene, delivery);
  return states;
}

async function shorten(path: string): Promise<void> {
  if ((await stat(path)).size > MOST_LOG) await truncate(path);
}

/** The resource usage, sample by sample. */
class Samples {
  private readonly seconds: number[] = [];
  private readonly all: Sample[] = [];

  /** Takes samples until the returned function is called. */
  start(cluster: TestCluster, kept: string): () => Promise<void> {
    const stopping = new AbortController();
    const { signal } = stopping;
    const startedAt = performance.now();
    const loop = (async () => {
      while (!signal.aborted) {
        this.seconds.push(Math.round((performance.now() - startedAt) / 1000));
        this.all.push(await sample(cluster));
        // An interrupted run keeps its samples.
        await this.save(kept);
        // The signal ends the wait; the loop checks it.
        await sleep(SAMPLE, undefined, { signal }).catch(() => undefined);
      }
    })();
    return async () => {
      stopping.abort();
      await loop;
    };
  }

  judge(): TrendResult[] {
    return this.columns().flatMap((name) => {
      const tolerance = TOLERANCES[kindOf(name)];
      return tolerance ? [judgeTrend(this.seconds, { name, tolerance, values: this.valuesOf(name) })] : [];
    });
  }

  async save(folder: string): Promise<void> {
    const columns = this.columns();
    const rows = this.all.map((values, i) =>
      [this.seconds[i], ...columns.map((name) => values[name]?.toFixed(1) ?? '')].join(),
    );
    await writeFile(join(folder, 'samples.csv'), `${[['seconds', ...columns].join(), ...rows].join('\n')}\n`);
    const kinds = [...new Set(columns.map(kindOf))];
    const panels = kinds.map((title) => ({
      title,
      curves: columns
        .filter((name) => kindOf(name) === title)
        .map((name) => ({ name, values: this.valuesOf(name) })),
    }));
    await writeFile(join(folder, 'curves.svg'), svgOf(this.seconds, panels));
  }

  private columns(): string[] {
    return [...new Set(this.all.flatMap((values) => Object.keys(values)))];
  }

  private valuesOf(name: string): (number | undefined)[] {
    return this.all.map((values) => values[name]);
  }
}

/** The name of a column without the name of its node. */
const kindOf = (column: string) => column.replace(/^n\d+'* /, '');
