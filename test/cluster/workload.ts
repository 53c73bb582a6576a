/** Writers and readers that use random nodes while the cluster is disturbed. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { messageOf } from '../../src/errors.js';
import { ask, deleteScene, findAll, type Outcome, outcomeOf, RequestFailed, startIngest } from './client.js';
import type { TestCluster, TestNode } from './cluster.js';
import { type DerivedScenes, PREDICT, SPLIT, TRAIN } from './derived-scenes.js';
import type { History, Read, SceneState, TileRead, Work, Write } from './history.js';
import { Forgotten, runJob, stackAll } from './jobs.js';
import { type FoundTile, observe } from './observe.js';
import type { Random } from './random.js';
import { DELIVERIES, type Deliveries } from './scene-deliveries.js';

const WRITERS = 3;
const READERS = 3;
/** Pause between two requests of a reader, ms. */
const PAUSE = 60;
/** Pause between two jobs over all tiles, ms. */
const JOB_PAUSE = 2000;
/** How long a writer waits for one change before it continues with other scenes, ms. */
const TIMEOUT_MS = 10_000;
const DELETES = 0.2;
/** Pauses between two deliveries of scenes from which tiles are derived, and between two derivations, ms. */
const LAYER_PAUSE = 600;

export interface WorkloadOptions {
  /** True if models are trained and applied as well. */
  trains?: boolean;
  /**
   * Each loop starts a step this many pauses after the start of the last one, however long that took, so that the load does not depend on
   * the speed of the machine. Without it, a loop pauses once after each step.
   */
  pace?: number;
}

export interface Setting {
  cluster: TestCluster;
  deliveries: Deliveries;
  layers: DerivedScenes;
  history: History;
}

/**
 * Invariant: a scene whose last change has an unknown outcome is not changed again until the outcome is known, so a late change is the
 * last change of its scene.
 */
export class Workload {
  private readonly stopping = new AbortController();
  private readonly loops: Promise<void>[] = [];
  private readonly open = new Set<Promise<void>>();
  private readonly busy = new Set<string>();
  private isAbandoned = false;
  /** Scenes that exist, as far as their writers know. */
  private readonly there = new Set<string>();

  constructor(
    private readonly setting: Setting,
    private readonly random: Random,
    private readonly options: WorkloadOptions = {},
  ) {}

  /** Takes over the scenes of an earlier workload: the last state of each starts the history. */
  resume(states: ReadonlyMap<string, SceneState>): void {
    const { history } = this.setting;
    for (const [scene, to] of states) {
      if (to === 'absent') continue;
      history.add({ kind: 'write', scene, to, node: '', invoked: -2, ended: -1, outcome: 'done' });
      this.there.add(scene);
    }
  }

  /** Writes the first delivery of some scenes. */
  async seed(): Promise<void> {
    const { scenes } = this.setting.deliveries;
    const nodes = this.setting.cluster.nodes;
    // The first scene creates the collection.
    for (const [i, scene] of scenes.slice(0, scenes.length / 2).entries())
      await this.write(scene, 0, nodes[i % nodes.length]!, 60_000);
    for (const scene of this.setting.layers.scenes) await this.write(scene, 0, nodes[0]!, 60_000);
    // Provides derived tiles to be made again, and a model for predictions.
    await runJob(this.setting, nodes[0]!, SPLIT, this.stopping.signal);
    if (this.options.trains) await runJob(this.setting, nodes[0]!, TRAIN, this.stopping.signal);
  }

  start(): void {
    const { scenes } = this.setting.deliveries;
    for (let w = 0; w < WRITERS; w++)
      this.loops.push(
        this.writeOn(
          scenes.filter((_, i) => i % WRITERS === w),
          this.random.fork(`writer ${w}`),
        ),
      );
    for (let r = 0; r < READERS; r++) this.loops.push(this.readOn(this.random.fork(`reader ${r}`)));
    this.loops.push(
      this.stackOn(this.random.fork('jobs')),
      this.layerOn(this.random.fork('layers')),
      this.workOn(this.random.fork('split'), [SPLIT]),
    );
    if (this.options.trains)
      this.loops.push(this.workOn(this.random.fork('train'), [PREDICT, PREDICT, TRAIN]));
  }

  /** Ends the loops. Outcomes that are still unknown are still requested. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.loops);
  }

  /** Ends everything, including requests for unknown outcomes. */
  async abandon(): Promise<void> {
    this.isAbandoned = true;
    await this.stop();
  }

  /** After the end: one more delivery through each node, first of the scenes from which tiles are derived. Returns the failed writes. */
  async writeThroughAll(timeoutMs: number): Promise<Write[]> {
    const { cluster, deliveries, layers } = this.setting;
    const free = [...layers.scenes, ...deliveries.scenes].filter((scene) => !this.busy.has(scene));
    const writes: Write[] = [];
    for (const [i, node] of cluster.nodes.entries())
      writes.push(await this.write(free[i % free.length]!, this.random.below(DELIVERIES), node, timeoutMs));
    return writes.filter(({ outcome }) => outcome !== 'done');
  }

  /** True if no outcome is being requested any more. */
  get isQuiet(): boolean {
    return this.open.size === 0;
  }

  private async writeOn(scenes: string[], random: Random): Promise<void> {
    const { cluster } = this.setting;
    while (!this.stopping.signal.aborted) {
      const began = performance.now();
      const free = scenes.filter((scene) => !this.busy.has(scene));
      if (free.length > 0) {
        const scene = random.pick(free);
        const isDelete = random.chance(DELETES) && this.there.has(scene);
        const to = isDelete ? 'absent' : random.below(DELIVERIES);
        await this.write(scene, to, random.pick(cluster.nodes), TIMEOUT_MS);
      }
      await this.rest(random.between(PAUSE, 3 * PAUSE), began);
    }
  }

  /** One change. Resolves when its outcome is known, or after a time limit; the outcome is then still requested. */
  private async write(scene: string, to: SceneState, node: TestNode, timeoutMs: number): Promise<Write> {
    const { history } = this.setting;
    const write: Write = {
      kind: 'write',
      scene,
      to,
      node: node.name,
      invoked: history.now(),
      ended: Infinity,
      outcome: 'unknown',
    };
    history.add(write);
    this.busy.add(scene);
    const work = (to === 'absent' ? this.delete(write, node) : this.ingest(write, to, node)).then(() => {
      this.open.delete(work);
      if (write.outcome !== 'unknown') this.busy.delete(scene);
    });
    this.open.add(work);
    await Promise.race([work, sleep(timeoutMs, undefined, { ref: false })]);
    return write;
  }

  private async delete(write: Write, node: TestNode): Promise<void> {
    this.end(write, await deleteScene(node.url, write.scene));
  }

  /**
   * Repeats the request with one key until it is known which job does it and what its outcome is. If the node is gone for
   * good, the other nodes know.
   */
  private async ingest(write: Write, delivery: number, node: TestNode): Promise<void> {
    const { scene: id } = write;
    const { cluster, deliveries, layers } = this.setting;
    const scene = layers.scenes.includes(id)
      ? layers.sceneOf(id, delivery)
      : { id, delivery, path: deliveries.pathOf(id, delivery) };
    const key = randomUUID();
    const forgotten = new Forgotten();
    let job: string | undefined;
    for (let tries = 0; !this.isAbandoned; tries++, await sleep(100)) {
      const { nodes } = cluster;
      const isAsked = nodes.includes(node) && !forgotten.suspects;
      const { url } = isAsked ? node : nodes[tries % nodes.length]!;
      try {
        job ??= await startIngest(url, scene, key);
        const ended = await outcomeOf(url, job);
        if (ended) return this.end(write, ended);
      } catch (error) {
        if (!(error instanceof RequestFailed)) throw error;
        write.why = error.message;
        const isRefused = job === undefined && error.status !== undefined && error.status < 500;
        if (isRefused) return this.end(write, { outcome: 'refused', why: error.message });
        if (job !== undefined && forgotten.see(error, nodes.length))
          return this.end(write, { outcome: 'unknown', why: error.message });
      }
    }
  }

  private end(write: Write, { outcome, why }: Outcome): void {
    write.outcome = outcome;
    if (why !== undefined) write.why = why;
    else delete write.why;
    if (outcome !== 'unknown') write.ended = this.setting.history.now();
    if (outcome !== 'done') return;
    if (write.to === 'absent') this.there.delete(write.scene);
    else this.there.add(write.scene);
  }

  private async readOn(random: Random): Promise<void> {
    const { cluster } = this.setting;
    while (!this.stopping.signal.aborted) {
      const began = performance.now();
      const node = random.pick(cluster.nodes);
      const found = await readAll(this.setting, node);
      const tile =
        found && found.tiles.length > 0 && random.chance(0.5) ? random.pick(found.tiles) : undefined;
      if (tile) await readTile(this.setting, node, tile, random.pick(this.setting.deliveries.groups()));
      await this.rest(PAUSE, began);
    }
  }

  private async stackOn(random: Random): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const began = performance.now();
      await stackAll(this.setting, random.pick(this.setting.cluster.nodes), signal);
      await this.rest(random.between(JOB_PAUSE, 2 * JOB_PAUSE), began);
    }
  }

  /** Corrected deliveries of the scenes from which tiles are derived. */
  private async layerOn(random: Random): Promise<void> {
    const { cluster, layers } = this.setting;
    while (!this.stopping.signal.aborted) {
      const began = performance.now();
      const free = layers.scenes.filter((scene) => !this.busy.has(scene));
      if (free.length > 0)
        await this.write(random.pick(free), random.below(DELIVERIES), random.pick(cluster.nodes), TIMEOUT_MS);
      await this.rest(random.between(LAYER_PAUSE / 2, 2 * LAYER_PAUSE), began);
    }
  }

  /** Runs some jobs in turn. */
  private async workOn(random: Random, jobs: { process: string; inputs: object }[]): Promise<void> {
    const { cluster, history } = this.setting;
    const { signal } = this.stopping;
    for (let n = 0; !signal.aborted; n++) {
      const began = performance.now();
      const node = random.pick(cluster.nodes);
      const invoked = history.now();
      const job = jobs[n % jobs.length]!;
      const ended = await runJob(this.setting, node, job, signal);
      if (ended)
        history.add<Work>({
          kind: 'work',
          process: job.process,
          node: node.name,
          invoked,
          ended: history.now(),
          outcome: ended.outcome,
          ...(ended.why !== undefined && { why: ended.why }),
        });
      await this.rest(random.between(LAYER_PAUSE / 2, LAYER_PAUSE), began);
    }
  }

  /** Waits until the next step of a loop whose last step started at `began`. */
  private rest(ms: number, began: number): Promise<void> {
    const { pace } = this.options;
    const wait = pace === undefined ? ms : Math.max(0, began + pace * ms - performance.now());
    // The signal rejects the wait at the end; the loops check it.
    return sleep(wait, undefined, { signal: this.stopping.signal }).catch(() => undefined);
  }
}

/** One search for everything, recorded; undefined if it is not answered. */
export async function readAll({ deliveries, history }: Setting, node: TestNode, limit?: number) {
  const invoked = history.now();
  try {
    const found = await findAll(node.url, limit === undefined ? {} : { limit });
    const ids = found.tiles.map(({ id }) => id);
    const read: Read = {
      kind: 'read',
      node: node.name,
      invoked,
      ended: history.now(),
      partial: found.partial,
      matched: found.matched,
      returned: ids.length,
      twice: [...new Set(ids.filter((id, i) => ids.indexOf(id) !== i))],
      scenes: observe(found.tiles, deliveries, found.partial),
    };
    history.add(read);
    return { tiles: found.tiles, read };
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    history.add({ kind: 'unanswered', node: node.name, invoked, ended: history.now(), why: error.message });
    return undefined;
  }
}

/** One file of a tile that a node has found; `isLast` if no other delivery can follow. */
export async function readTile(
  { deliveries, history }: Setting,
  node: TestNode,
  { id: tile, scene, delivery }: FoundTile,
  group: string,
  isLast = false,
): Promise<void> {
  const read: TileRead = {
    kind: 'tile',
    node: node.name,
    tile,
    group,
    scene,
    delivery,
    invoked: history.now(),
    ended: 0,
    outcome: 'right',
  };
  try {
    const bytes = await (await ask(node.url, `/tiles/${tile}/${group}.tif`))
      .arrayBuffer()
      .catch((error: Error) => {
        throw new RequestFailed(messageOf(error.cause ?? error));
      });
    const sum = crc32(Buffer.from(bytes));
    const allowed = isLast ? [delivery] : [...Array(DELIVERIES).keys()];
    if (!allowed.some((one) => deliveries.sumOf(tile, group, one) === sum)) {
      read.outcome = 'wrong';
      read.why = `its CRC-32 is ${sum}`;
    }
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    const { status, message } = error;
    read.outcome = status === 404 ? 'gone' : status === 500 ? 'failed' : 'away';
    read.why = message;
  }
  read.ended = history.now();
  history.add(read);
}
