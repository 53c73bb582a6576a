/** One pair: a cluster is created, used, disturbed, repaired and checked. */
import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/errors.js';
import { awaitRecovery, problemsOfPlacement } from './await-recovery.js';
import { check, type Truth, type Violation } from './checkers.js';
import { Cleanups } from './cleanups.js';
import { until } from './client.js';
import { TestCluster, type TestNode } from './cluster.js';
import { verifyCommits } from './commit-verifier.js';
import type { DerivedScenes } from './derived-scenes.js';
import { CheckpointAndGcLoad } from './gc-load.js';
import { History } from './history.js';
import { type NetworkKind, openNetwork } from './network/open.js';
import { Random } from './random.js';
import { readEverything } from './read-everything.js';
import type { ScenarioFaultPair } from './scenario-fault-pairs.js';
import type { Deliveries } from './scene-deliveries.js';
import { readAll, type Setting, Workload } from './workload.js';

const NODES = 3;
/** Time limits for the start of a cluster, and for its recovery after the last fault, ms. */
const START_TIMEOUT_MS = 300_000;
const HEAL_TIMEOUT_MS = 120_000;
/** How long a fault lasts after the change of the scenario, ms. */
const USUAL_FAULT_MS: [number, number] = [4000, 9000];
/** Start time of a cluster on an idle machine with two cores, ms. */
const USUAL_START = 15_000;

export interface ScenarioSettings {
  pair: ScenarioFaultPair;
  seed: number;
  /** Folder for logs and data; removed if all is well. */
  folder: string;
  deliveries: Deliveries;
  layers: DerivedScenes;
  scenes: string;
  network: NetworkKind;
}

export interface ScenarioResult {
  violations: Violation[];
  history: History;
  /** Figures for the printed line. */
  summary: string;
}

export async function runScenario(settings: ScenarioSettings): Promise<ScenarioResult> {
  const { pair, folder, deliveries, layers, scenes } = settings;
  const { scenario, fault } = pair;
  const random = new Random(settings.seed).fork(pair.name);
  const history = new History();
  const cleanups = new Cleanups();
  const violations: Violation[] = [];
  const truth: Truth = {
    sizeOf: (scene, delivery) => deliveries.tilesOf(scene, delivery).size,
    filesOf: (scene, delivery) => layers.splitOf(scene, delivery),
  };
  let healSeconds = Number.NaN;
  await mkdir(folder, { recursive: true });
  try {
    const network = await openNetwork(settings.network);
    cleanups.after(() => network.close());
    const {
      etcdServers = 1,
      proxiesEtcd = false,
      agesEtcd = false,
      diskMegabytes,
      trains,
      storeLatency,
    } = fault;
    const cluster = await TestCluster.start(
      { folder, scenes, network, history, nodes: NODES, etcdServers, proxiesEtcd, agesEtcd, diskMegabytes },
      cleanups,
    );
    await awaitRecovery(cluster, START_TIMEOUT_MS);
    cluster.slowness = Math.max(1, history.now() / USUAL_START);
    const limit = HEAL_TIMEOUT_MS * cluster.slowness;
    cluster.isSteady = scenario.name === 'steady' && fault.isHarmless === true;
    const setting = { cluster, deliveries, layers, history };
    const workload = new Workload(setting, random.fork('workload'), { trains });
    cleanups.after(() => workload.abandon());
    await workload.seed();
    const hasUpkeep = random.chance(0.5) || storeLatency !== undefined;
    const upkeep = hasUpkeep
      ? new CheckpointAndGcLoad(cluster, random.fork('upkeep'), storeLatency)
      : undefined;
    cleanups.after(() => upkeep?.stop());
    workload.start();
    await sleep(random.between(500, 2000));

    const [target, changing] = targets(cluster, random);
    history.note(`${fault.name} begins at ${target.name}`);
    const end = await fault.begin(cluster, target, random.fork('fault'));
    await sleep(random.between(500, 3000));
    history.note(`${scenario.name} begins at ${changing.name}`);
    await scenario.begin(cluster, changing);
    await sleep(random.between(...(fault.lastsMs ?? USUAL_FAULT_MS)));
    history.note(`${fault.name} ends`);
    await end();
    await scenario.finish?.(cluster, changing);
    await sleep(random.between(500, 2000));
    await workload.stop();
    await upkeep?.stop();

    const healing = history.now();
    history.note('all is healed');
    await untilQuiet(setting, workload, limit);
    healSeconds = (history.now() - healing) / 1000;
    for (const write of await workload.writeThroughAll(limit))
      violations.push({
        rule: 'heals',
        detail: `${write.node} takes no write: ${write.why}`,
        events: [write],
      });
    await untilQuiet(setting, workload, limit);
    const healed = history.now();
    violations.push(...(await readEverything(setting, trains)));
    violations.push(
      ...(await problemsOfPlacement(cluster)),
      ...keepRunning(cluster.nodes),
      ...(await verifyCommits(cluster)),
      ...check(history, healed, truth),
    );
  } catch (error) {
    violations.push({ rule: 'heals', detail: messageOf(error), events: [] });
    violations.push(...check(history, Infinity, truth));
  } finally {
    await cleanups.run();
  }
  return { violations, history, summary: summaryOf(history, healSeconds) };
}

/** The node of the fault, and the node that joins or leaves: two nodes, so that both happen. */
function targets({ nodes }: TestCluster, random: Random): [target: TestNode, changing: TestNode] {
  const target = random.pick(nodes);
  return [target, random.pick(nodes.filter((node) => node !== target))];
}

/** A fault that does not kill a process must not end it. */
export function keepRunning(nodes: TestNode[]): Violation[] {
  return nodes
    .filter(({ server }) => server.ends > 0)
    .map(({ name, server }) => ({
      rule: 'keeps running',
      detail: `${name} has ended by itself ${server.ends} times; its log says why`,
      events: [],
    }));
}

/** All slots have their owners, all jobs have ended, and all nodes answer completely and equally. */
export async function untilQuiet(setting: Setting, workload: Workload, limit: number): Promise<void> {
  await awaitRecovery(setting.cluster, limit);
  await until('all jobs have ended', limit, async () => workload.isQuiet);
  await until('all nodes answer equally', limit, () => answerAlike(setting));
}

/** True if all nodes answer completely and equally. */
async function answerAlike(setting: Setting): Promise<boolean> {
  const all = await Promise.all(setting.cluster.nodes.map((node) => readAll(setting, node)));
  const texts = all.map((one) => (one && !one.read.partial ? JSON.stringify(one.read.scenes) : undefined));
  return texts.every((text) => text !== undefined && text === texts[0]);
}

function summaryOf(history: History, healSeconds: number): string {
  const writes = history.of('write');
  const of = (wanted: string) => writes.filter(({ outcome }) => outcome === wanted).length;
  const reads = history.of('read');
  const partial = reads.filter((read) => read.partial).length;
  const unanswered = history.of('unanswered').length;
  const jobs = history.of('job').map(({ outcome }) => outcome);
  const done = jobs.filter((outcome) => outcome === 'done').length;
  const work = history.of('work');
  const worked = work.filter(({ outcome }) => outcome === 'done').length;
  const upkeep = history.of('upkeep').filter(({ outcome }) => outcome === 'done').length;
  return [
    `writes ${of('done')} done, ${of('refused')} refused, ${of('unknown')} unknown`,
    `reads ${reads.length - partial} whole, ${partial} partial, ${unanswered} unanswered`,
    `jobs ${done} done, ${jobs.length - done} failed`,
    `derivations ${worked} done, ${work.length - worked} failed`,
    ...(upkeep > 0 ? [`upkeep ${upkeep}`] : []),
    `healed in ${healSeconds.toFixed(1)} s`,
  ].join('; ');
}
