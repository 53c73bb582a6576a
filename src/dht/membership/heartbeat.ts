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
import { stillRunning } from '../errors.js';

const FOLDER = 'running/';
/** ms. */
const EVERY = 20_000;
const PATIENCE = 3 * EVERY;
const LOOK = 1000;
/** A node that stops does not wait longer for its store, ms. */
const FAREWELL = 2000;

export class SignOfLife {
  /** Objects of this node that may be in the store. */
  private last: string[] = [];
  private repeated: PeriodicTask | undefined;

  private constructor(
    private readonly objects: ObjectStore,
    private readonly node: string,
  ) {}

  /** Resolves after the first heartbeat; if that fails, no other follows. Removes what an earlier process of the node has left. */
  static async start(
    objects: ObjectStore,
    node: string,
    onFailure: (error: unknown) => void,
  ): Promise<SignOfLife> {
    const sign = new SignOfLife(objects, node);
    sign.last = await signs(objects, node);
    await sign.show();
    sign.repeated = new PeriodicTask(() => sign.show(), EVERY, onFailure);
    return sign;
  }

  private async show(): Promise<void> {
    const name = `${FOLDER}${this.node}/${randomUUID()}`;
    const former = this.last;
    // Named before it is written: if a step fails, the next heartbeat removes it.
    this.last = [...former, name];
    await this.objects.put(name, Buffer.alloc(0));
    await this.objects.delete(former);
    this.last = [name];
  }

  async close(): Promise<void> {
    await this.repeated?.close();
    await this.objects.delete(this.last, { signal: AbortSignal.timeout(FAREWELL) });
  }
}

/**
 * Throws TW_DHT_STILL_RUNNING where a node runs. Nodes that were killed have left their signs: these are waited for, which `onWait` is told,
 * and removed.
 */
export async function requireStopped(
  objects: ObjectStore,
  patience = PATIENCE,
  onWait: (nodes: string[], patience: number) => void = () => {},
): Promise<void> {
  const before = await signs(objects);
  if (before.length === 0) return;
  onWait(nodesOf(before), patience);
  for (const begun = performance.now(); performance.now() - begun < patience; ) {
    await sleep(Math.min(LOOK, patience));
    const fresh = (await signs(objects)).filter((name) => !before.includes(name));
    if (fresh.length > 0) throw stillRunning(nodesOf(fresh).join(', '));
  }
  await objects.delete(before);
}

async function signs(objects: ObjectStore, node?: string): Promise<string[]> {
  const found: string[] = [];
  const folder = node === undefined ? FOLDER : `${FOLDER}${node}/`;
  for await (const { name } of objects.list(folder)) found.push(name);
  return found;
}

const nodesOf = (names: string[]) => [...new Set(names.map((name) => name.split('/')[1]!))];
