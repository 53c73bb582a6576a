/**
 * Every node writes heartbeats to the tile store, so that `node restore` notices running nodes even if it was given the wrong etcd.
 *
 * Invariant: a running node has an object `running/<node>/<id>`, whose id changes every INTERVAL_MS; a node that was stopped has none.
 * No clocks are compared: a new name within DEAD_AFTER_MS proves that a node is running.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PeriodicTask, toArray } from '../../async/index.js';
import type { ObjectStore } from '../../storage/index.js';
import { nodesStillRunning } from '../errors.js';

const FOLDER = 'running/';
const INTERVAL_MS = 20_000;
const DEAD_AFTER_MS = 3 * INTERVAL_MS;
const POLL_INTERVAL_MS = 1000;
/** A node that stops waits no longer for its object store. */
const CLOSE_TIMEOUT_MS = 2000;

export class Heartbeat {
  /** Objects of this node that may exist in the store. */
  private objectNames: string[] = [];
  private task: PeriodicTask | undefined;

  private constructor(
    private readonly objects: ObjectStore,
    private readonly node: string,
  ) {}

  /** Resolves after the first heartbeat; if that fails, no more follow. Removes the heartbeats of earlier processes of the node. */
  static async start(
    objects: ObjectStore,
    node: string,
    onFailure: (error: unknown) => void,
  ): Promise<Heartbeat> {
    const heartbeat = new Heartbeat(objects, node);
    heartbeat.objectNames = await listHeartbeats(objects, node);
    await heartbeat.beat();
    heartbeat.task = new PeriodicTask(() => heartbeat.beat(), INTERVAL_MS, onFailure);
    return heartbeat;
  }

  private async beat(): Promise<void> {
    const name = `${FOLDER}${this.node}/${randomUUID()}`;
    const former = this.objectNames;
    // The name is recorded before the object is written: if a step fails, the next heartbeat removes it.
    this.objectNames = [...former, name];
    await this.objects.put(name, Buffer.alloc(0));
    await this.objects.delete(former);
    this.objectNames = [name];
  }

  async close(): Promise<void> {
    await this.task?.close();
    await this.objects.delete(this.objectNames, { signal: AbortSignal.timeout(CLOSE_TIMEOUT_MS) });
  }
}

/**
 * Throws TW_DHT_STILL_RUNNING if a node is running. A killed node leaves its last heartbeat behind: `onWait` gets the ids of these nodes,
 * and if none writes a new heartbeat within `timeoutMs`, their objects are removed.
 */
export async function requireNoHeartbeats(
  objects: ObjectStore,
  timeoutMs = DEAD_AFTER_MS,
  onWait: (nodes: string[], timeoutMs: number) => void = () => {},
): Promise<void> {
  const before = await listHeartbeats(objects);
  if (before.length === 0) return;
  onWait(nodesOf(before), timeoutMs);
  for (const startedAt = performance.now(); performance.now() - startedAt < timeoutMs; ) {
    await sleep(Math.min(POLL_INTERVAL_MS, timeoutMs));
    const fresh = (await listHeartbeats(objects)).filter((name) => !before.includes(name));
    if (fresh.length > 0) throw nodesStillRunning(nodesOf(fresh).join(', '));
  }
  await objects.delete(before);
}

async function listHeartbeats(objects: ObjectStore, node?: string): Promise<string[]> {
  const objectInfos = await toArray(objects.list(node === undefined ? FOLDER : `${FOLDER}${node}/`));
  return objectInfos.map(({ name }) => name);
}

const nodesOf = (names: string[]) => [...new Set(names.map((name) => name.split('/')[1]!))];
