/**
 * Nodes show in the tile store that they run: whoever would make their etcd anew may be asking another one, where none of them is seen.
 *
 * Invariant: a node that runs has an object `running/<node>/<id>`, whose id changes at every `EVERY`; one that has stopped by itself has none.
 * So no clocks are compared: who sees a new name within `PATIENCE` has seen a node that runs.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PeriodicTask } from '../../async/index.js';
import type { ObjectStore } from '../../storage/index.js';
import { nodesStillRunning } from '../errors.js';

const FOLDER = 'running/';
/** ms. */
const INTERVAL_MS = 20_000;
const DEAD_AFTER_MS = 3 * INTERVAL_MS;
const POLL_INTERVAL_MS = 1000;
/** A node that stops does not wait longer for its store, ms. */
const CLOSE_TIMEOUT_MS = 2000;

export class Heartbeat {
  /** Objects of this node that may be in the store. */
  private objectNames: string[] = [];
  private task: PeriodicTask | undefined;

  private constructor(
    private readonly objects: ObjectStore,
    private readonly node: string,
  ) {}

  /** Resolves after the first heartbeat; if that fails, no other follows. Removes what an earlier process of the node has left. */
  static async start(
    objects: ObjectStore,
    node: string,
    onFailure: (error: unknown) => void,
  ): Promise<Heartbeat> {
    const sign = new Heartbeat(objects, node);
    sign.objectNames = await listHeartbeats(objects, node);
    await sign.beat();
    sign.task = new PeriodicTask(() => sign.beat(), INTERVAL_MS, onFailure);
    return sign;
  }

  private async beat(): Promise<void> {
    const name = `${FOLDER}${this.node}/${randomUUID()}`;
    const former = this.objectNames;
    // Named before it is written: if a step fails, the next heartbeat removes it.
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
 * Throws TW_DHT_STILL_RUNNING where a node runs. Nodes that were killed have left their signs: these are waited for, which `onWait` is told,
 * and removed.
 */
export async function requireNoHeartbeats(
  objects: ObjectStore,
  timeoutMs = DEAD_AFTER_MS,
  onWait: (nodes: string[], timeoutMs: number) => void = () => {},
): Promise<void> {
  const before = await listHeartbeats(objects);
  if (before.length === 0) return;
  onWait(nodesOf(before), timeoutMs);
  for (const begun = performance.now(); performance.now() - begun < timeoutMs; ) {
    await sleep(Math.min(POLL_INTERVAL_MS, timeoutMs));
    const fresh = (await listHeartbeats(objects)).filter((name) => !before.includes(name));
    if (fresh.length > 0) throw nodesStillRunning(nodesOf(fresh).join(', '));
  }
  await objects.delete(before);
}

async function listHeartbeats(objects: ObjectStore, node?: string): Promise<string[]> {
  const found: string[] = [];
  const folder = node === undefined ? FOLDER : `${FOLDER}${node}/`;
  for await (const { name } of objects.list(folder)) found.push(name);
  return found;
}

const nodesOf = (names: string[]) => [...new Set(names.map((name) => name.split('/')[1]!))];
