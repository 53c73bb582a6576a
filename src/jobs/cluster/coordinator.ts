/** Coordinates the work of a job: each owner works on its slots, and other owners take over the slots of one that fails. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ALL_SLOTS,
  type Cluster,
  commitNotInLog,
  type Peer,
  type PeerClient,
  peerFailed,
  readableOwners,
  replicaBehind,
  SlotSet,
  slotNotHeld,
  streamLines,
} from '../../dht/index.js';
import { fromErrorDocument, messageOf, TilewrightError } from '../../errors.js';
import { type Check, messageCheck, objectOf } from '../../utils/json-schema.js';
import { jobDismissed, jobFailed, jobInterrupted, noWorkerAvailable, taskLost } from '../errors.js';
import {
  type ConcludeContext,
  concludeResults,
  type FullJobContext,
  type JobProgress,
  type Process,
  runLocally,
} from '../process.js';
import {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  combinedProgress,
  eventCheck,
  newTaskId,
  TASK_PATH,
  type TaskEvent,
  type TaskExecutor,
  type TaskProgress,
  type TaskRequest,
  type TaskResult,
  taskObjectName,
} from './tasks.js';

export interface SlotWork {
  slot: number;
  /** Nodes that can work on the slot, the preferred one first; not empty. */
  nodes: readonly string[];
  /** Bytes of its tiles, which measure its work. */
  bytes: number;
}

/** Tolerated excess over the target load. A smaller tolerance would move slots away from their first owners for little gain. */
const LOAD_TOLERANCE = 0.02;

/**
 * Divides the slots of a job among their owners, so that no node works much longer than the others. Each slot starts at its first node.
 * While a node exceeds its target load, the slot whose move improves the balance most is moved. The result depends only on the arguments.
 * `weightOf` returns the relative work of a node, above 0.
 */
export function assignSlots(
  slots: readonly SlotWork[],
  weightOf: (node: string) => number,
): Map<string, number[]> {
  const nodes = [...new Set(slots.flatMap(({ nodes }) => nodes))].sort();
  const weights = new Map(nodes.map((node) => [node, weightOf(node)]));
  const loads = new Map(nodes.map((node) => [node, 0]));
  const nodeOf = new Map<SlotWork, string>();
  for (const slot of slots) {
    nodeOf.set(slot, slot.nodes[0]!);
    loads.set(slot.nodes[0]!, loads.get(slot.nodes[0]!)! + slot.bytes);
  }
  const total = sumOf(loads.values());
  const maxLoadPerWeight = ((1 + LOAD_TOLERANCE) * total) / sumOf(weights.values());
  const isEven = () => nodes.every((node) => loads.get(node)! <= maxLoadPerWeight * weights.get(node)!);
  const movable = slots.filter(({ nodes, bytes }) => nodes.length > 1 && bytes > 0);
  // Each move lowers the sum of load^2 / weight, so no assignment repeats; a slot rarely moves more than once.
  for (let moves = 0; moves < movable.length && !isEven(); moves++) {
    let best: { slot: SlotWork; to: string; gain: number } | undefined;
    for (const slot of movable)
      for (const to of slot.nodes) {
        const from = nodeOf.get(slot)!;
        if (to === from) continue;
        const decrease = (2 * loads.get(from)! - slot.bytes) / weights.get(from)!;
        const increase = (2 * loads.get(to)! + slot.bytes) / weights.get(to)!;
        const gain = slot.bytes * (decrease - increase);
        if (gain > (best?.gain ?? 0)) best = { slot, to, gain };
      }
    if (!best) break;
    const { slot, to } = best;
    const from = nodeOf.get(slot)!;
    loads.set(from, loads.get(from)! - slot.bytes);
    loads.set(to, loads.get(to)! + slot.bytes);
    nodeOf.set(slot, to);
  }
  const result = new Map<string, number[]>();
  for (const slot of slots) {
    const node = nodeOf.get(slot)!;
    const own = result.get(node);
    if (own) own.push(slot.slot);
    else result.set(node, [slot.slot]);
  }
  return result;
}

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

/** A node that is silent for this long is considered dead. Nodes send a sign of life every second. */
const NODE_IDLE_TIMEOUT_MS = 5000;
/** How long the coordinator looks for nodes that can do the work of failed ones, and how often. */
const NO_WORKER_TIMEOUT_MS = 120_000;
const RETRY_INTERVAL_MS = 1000;
const CANCEL_TIMEOUT_MS = 5000;
const CANCEL_INTERVAL_MS = 100;
/** Values may have megabytes, and the node may be busy with tiles. */
const ALL_GATHER_TIMEOUT_MS = 60_000;
/** How long this node waits for the commits of the others. */
const CATCH_UP_TIMEOUT_MS = 600_000;

const checkCancelReply = messageCheck(objectOf({ known: { type: 'boolean' } }));
const checkAllGatherReply = messageCheck(objectOf({}));

interface CoordinateOptions {
  cluster: Cluster;
  peers: PeerClient;
  /** The tasks of this node. */
  tasks: TaskExecutor;
}

const NO_OWNER = 'none of their owners is running';

/** A task that runs together with all others. */
interface BarrierTask {
  node: string;
  /** Number of tasks that run together. */
  taskCount: number;
  begun: () => void;
  contribution?: { value: unknown };
  hasEnded?: boolean;
}

/** Runs a process whose work is divided by cells on the owners of the cells, and any other process on this node. */
export async function coordinate(
  options: CoordinateOptions,
  process: Process,
  inputs: unknown,
  context: FullJobContext,
): Promise<unknown> {
  if (!process.merge) return runLocally(process, inputs, context);
  return new JobCoordinator(options, process, inputs, context).run();
}

/**
 * The work of one job. Invariant: `parts` has the results of tasks with disjoint slots; when `run` resolves, they cover all slots.
 */
class JobCoordinator {
  private readonly parts: unknown[] = [];
  /** Partial results of cancelled tasks. */
  private readonly partial: unknown[] = [];
  private readonly counts = new Map<string, TaskProgress>();
  /** For tasks that run together: the tasks by id, in the order of their start. */
  private readonly barrierTasks = new Map<string, BarrierTask>();
  /** Aborted when one task fails permanently, or the job ends. */
  private readonly failed = new AbortController();
  private readonly signal: AbortSignal;
  private readonly since: number;
  /** True while the job waits for unreachable nodes. */
  private isWaiting = false;
  private readonly checkLine: Check;
  /** Bytes of the tiles of each slot at the start of the job. */
  private bytes: ArrayLike<number> = [];

  constructor(
    private readonly options: CoordinateOptions,
    private readonly process: Process,
    private readonly inputs: unknown,
    private readonly context: FullJobContext,
  ) {
    this.signal = AbortSignal.any([context.signal, this.failed.signal]);
    this.since = options.cluster.replica.applied;
    this.checkLine = eventCheck(process);
  }

  async run(): Promise<unknown> {
    const { context } = this;
    context.partial(() => this.process.merge?.([...this.parts, ...this.partial]));
    this.bytes = await this.bytesOfSlots();
    if (this.process.usesBarrier?.(this.inputs)) await this.runBarrierTasks();
    else await this.runOnOwners([...ALL_SLOTS], new Set(), Infinity);
    return concludeResults(this.process, this.parts, this.concludeContext(), this.inputs);
  }

  /** The context of the job, but files go to the object store, where all nodes find them. */
  private concludeContext(): ConcludeContext {
    const { context, options, signal } = this;
    const run = { job: context.id, run: newTaskId() };
    return {
      ...context,
      file: async (name) => context.file(name, await options.tasks.publish(run, name, signal)),
    };
  }

  /** Assigns slots to owners and waits for their work; gives up at `deadline`. */
  private async runOnOwners(slots: number[], avoided: Set<string>, deadline: number): Promise<void> {
    const { slotsByNode, unanswered } = this.route(slots, avoided);
    const works = [...slotsByNode].map(([node, own]) => this.runTask(node, own, avoided, deadline));
    if (unanswered.length > 0) works.push(this.retryLater(unanswered, deadline, NO_OWNER));
    await this.awaitAll(works);
  }

  /** Waits until all have ended; the first failure ends the others. */
  private async awaitAll(works: Promise<void>[]): Promise<void> {
    const ends = await Promise.allSettled(works.map((work) => work.catch((error) => this.fail(error))));
    for (const end of ends)
      if (end.status === 'rejected')
        throw this.context.signal.aborted ? this.context.signal.reason : this.failed.signal.reason;
  }

  /** Lets all owners work at the same time, each on its slots, until all are done or one is lost. */
  private async runBarrierTasks(): Promise<void> {
    const slotsByNode = [...(await this.routeAll())].sort(([a], [b]) => (a < b ? -1 : 1));
    const works: Promise<void>[] = [];
    // Tasks start one after another in an order that is the same for all jobs. Otherwise two jobs could deadlock, each waiting for a node
    // that works for the other.
    for (const [node, slots] of slotsByNode)
      await new Promise<void>((begun) => {
        const request = this.request(slots);
        const task: BarrierTask = { node, taskCount: slotsByNode.length, begun };
        this.barrierTasks.set(request.run, task);
        const work = this.runTaskOn(node, request)
          .then(() => {
            task.hasEnded = true;
            this.requireMeeting();
          })
          .catch((error) =>
            this.fail(isNodeLost(error) ? taskLost.because(error, node, messageOf(error)) : error),
          );
        works.push(work);
        work.then(begun, begun);
      });
    await this.awaitAll(works);
  }

  private async routeAll(): Promise<Map<string, number[]>> {
    for (const until = performance.now() + NO_WORKER_TIMEOUT_MS; ; ) {
      const { slotsByNode, unanswered } = this.route([...ALL_SLOTS], new Set());
      if (unanswered.length === 0) return slotsByNode;
      if (performance.now() > until) throw noWorkerAvailable(unanswered.length, NO_OWNER);
      this.reportWaiting(unanswered.length);
      await sleep(RETRY_INTERVAL_MS, undefined, { signal: this.signal });
    }
  }

  /** Once every task has contributed its value, sends all values to all tasks. */
  private collectAllGather(node: string, run: string, value: unknown): void {
    const { cluster, peers, tasks: executor } = this.options;
    const contributor = this.barrierTasks.get(run);
    if (!contributor) throw this.failureOf(node, 'it waits for other nodes, which this job does not need');
    contributor.contribution = { value };
    const tasks = [...this.barrierTasks];
    const values = tasks.flatMap(([, { contribution }]) => (contribution ? [contribution.value] : []));
    this.requireMeeting();
    if (values.length < contributor.taskCount) return;
    // The tasks may meet again.
    for (const [, task] of tasks) delete task.contribution;
    const deliver = async (run: string, node: string) => {
      if (node === cluster.self) executor.deliverAllGather(run, values);
      else
        await peers.call(
          this.peer(node),
          ALL_GATHER_PATH,
          { run, words: values },
          ALL_GATHER_TIMEOUT_MS,
          checkAllGatherReply,
        );
    };
    for (const [run, { node }] of tasks)
      deliver(run, node).catch((error) => this.failed.abort(taskLost.because(error, node, messageOf(error))));
  }

  /** Throws TW_JOB_FAILED if tasks wait for one that has ended, such as on a node whose version has fewer meetings. */
  private requireMeeting(): void {
    const tasks = [...this.barrierTasks.values()];
    const ended = tasks.find(({ hasEnded }) => hasEnded);
    if (ended && tasks.some(({ hasEnded, contribution }) => contribution && !hasEnded))
      throw jobFailed(
        `node ${ended.node} has ended its task while other nodes wait for it; run the same version on all nodes`,
      );
  }

  private failureOf(node: string, detail: string): TilewrightError {
    return peerFailed(node, this.options.cluster.peer(node)?.url ?? 'an unknown address', detail);
  }

  /** The address of a node. Throws TW_DHT_PEER. */
  private peer(node: string): Peer {
    const peer = this.options.cluster.peer(node);
    if (!peer) throw this.failureOf(node, 'it has not been seen');
    return peer;
  }

  private fail(error: unknown): never {
    this.failed.abort(error);
    throw error;
  }

  /** Retries after a pause, with all nodes. */
  private async retryLater(slots: number[], deadline: number, detail: string): Promise<void> {
    const until = Math.min(deadline, performance.now() + NO_WORKER_TIMEOUT_MS);
    if (performance.now() + RETRY_INTERVAL_MS > until) throw noWorkerAvailable(slots.length, detail);
    this.reportWaiting(slots.length);
    await sleep(RETRY_INTERVAL_MS, undefined, { signal: this.signal });
    await this.runOnOwners(slots, new Set(), until);
  }

  /** Reports how many slots wait for owners, or that none do any more. The log gets only the first report. */
  private reportWaiting(slots: number): void {
    const { context } = this;
    const text = slots > 0 ? `waiting for the owners of ${slots} slots, which are not reachable` : '';
    if (slots > 0 && !this.isWaiting) context.log('warning', text);
    this.isWaiting = slots > 0;
    context.message(text);
  }

  /** Asks all nodes. If that fails, the first owners do the work, which is less even but equally correct. */
  private async bytesOfSlots(): Promise<ArrayLike<number>> {
    try {
      return (await this.options.cluster.stats()).bytes;
    } catch (error) {
      this.context.log('warning', `the sizes of the slots are unknown: ${messageOf(error)}`);
      return [];
    }
  }

  /** Assigns slots to running owners; also returns the slots without one. Ends the report of waiting if all have one. */
  private route(slots: number[], avoided: ReadonlySet<string>) {
    const { placement, nodes, self } = this.options.cluster;
    const present = new Set(nodes.map(({ id }) => id)).add(self);
    const worked: SlotWork[] = [];
    const unanswered: number[] = [];
    for (const slot of slots) {
      const owners = readableOwners(placement.slots[slot]!).map(({ node }) => node);
      const able = owners.filter((node) => present.has(node) && !avoided.has(node));
      if (able.length === 0) unanswered.push(slot);
      else worked.push({ slot, nodes: able, bytes: this.bytes[slot] ?? 0 });
    }
    if (unanswered.length === 0 && this.isWaiting) this.reportWaiting(0);
    const weights = new Map(placement.nodes.map(({ id, weight }) => [id, weight]));
    return { slotsByNode: assignSlots(worked, (node) => weights.get(node) ?? 1), unanswered };
  }

  private request(slots: number[]): TaskRequest {
    return {
      job: this.context.id,
      run: newTaskId(),
      process: this.process.id,
      inputs: this.inputs,
      slots: new SlotSet(slots).toText(),
      since: this.since,
    };
  }

  /** Runs a task on a node and keeps its result. */
  private async runTaskOn(node: string, request: TaskRequest): Promise<void> {
    const { context } = this;
    const startedAt = performance.now();
    const { part, files, applied } = await this.requestTask(node, request);
    for (const [name, object] of Object.entries(files))
      if (object !== taskObjectName(request, name))
        throw this.failureOf(node, `${object} is not a file of its task`);
    await this.apply(applied);
    this.parts.push(part);
    for (const [name, object] of Object.entries(files)) await context.file(name, object);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const { size } = SlotSet.fromText(request.slots);
    context.log('info', `node ${node}: its task with ${size} slots finished after ${seconds} s`);
  }

  /**
   * Waits for a commit that a node has applied, so that a client that sees the end of the job on this node also sees what the job made.
   * Throws TW_DHT_NO_COMMIT.
   */
  private apply(seq: number): Promise<void> {
    return this.options.cluster.replica
      .waitForNamedCommit(seq, CATCH_UP_TIMEOUT_MS, this.signal)
      .catch((error) => {
        // This node is behind, which no other owner can fix.
        if (replicaBehind.is(error)) this.fail(error);
        throw error;
      });
  }

  private async runTask(
    node: string,
    slots: number[],
    avoided: Set<string>,
    deadline: number,
  ): Promise<void> {
    const { context } = this;
    const request = this.request(slots);
    try {
      await this.runTaskOn(node, request);
    } catch (error) {
      this.signal.throwIfAborted();
      if (!isNodeFailure(error)) throw error;
      const detail = messageOf(error);
      context.log(
        'warning',
        `node ${node}: its task with ${slots.length} slots is given to other nodes: ${detail}`,
      );
      this.counts.delete(request.run);
      this.reportProgress();
      avoided.add(node);
      const until = Math.min(deadline, performance.now() + NO_WORKER_TIMEOUT_MS);
      if (this.route(slots, avoided).unanswered.length === 0) return this.runOnOwners(slots, avoided, until);
      return this.retryLater(slots, until, detail);
    }
  }

  private async requestTask(node: string, request: TaskRequest): Promise<TaskResult> {
    const { cluster, peers, tasks } = this.options;
    if (node === cluster.self)
      return tasks.run(request, (line) => this.onTaskEvent(node, request.run, line), this.signal);
    const peer = this.peer(node);
    // A cancelled job waits until the owners confirm the end of their tasks; an interrupted one does not.
    const connection = new AbortController();
    const stop = () => void this.stop(node, request, connection);
    this.signal.addEventListener('abort', stop, { once: true });
    try {
      this.signal.throwIfAborted();
      const message = {
        peers,
        peer,
        path: TASK_PATH,
        message: request,
        check: this.checkLine,
        idleTimeoutMs: NODE_IDLE_TIMEOUT_MS,
        signal: connection.signal,
      };
      for await (const line of streamLines<TaskEvent>(message)) {
        if ('result' in line) return line.result;
        if ('error' in line) throw fromErrorDocument(line.error);
        this.onTaskEvent(node, request.run, line);
      }
      throw peerFailed(node, peer.url, 'it broke off');
    } finally {
      this.signal.removeEventListener('abort', stop);
      connection.abort();
    }
  }

  /** Asks a node to end its task, or disconnects from it; `connection` is aborted when the task has ended. */
  private async stop(node: string, { run, job }: TaskRequest, connection: AbortController): Promise<void> {
    const { cluster, peers } = this.options;
    const peer = cluster.peer(node);
    const isCancelled = jobDismissed.is(this.signal.reason);
    try {
      if (!peer || !isCancelled) throw this.signal.reason;
      // The cancellation may arrive before the task.
      for (let known = false; !known && !connection.signal.aborted; ) {
        ({ known } = await peers.call<{ known: boolean }>(
          peer,
          CANCEL_TASK_PATH,
          { run, job },
          CANCEL_TIMEOUT_MS,
          checkCancelReply,
        ));
        if (!known) await sleep(CANCEL_INTERVAL_MS);
      }
    } catch {
      // The node does not answer; it ends the task by itself when its answer has no reader.
      connection.abort(this.signal.reason);
    }
  }

  private onTaskEvent(node: string, run: string, line: TaskEvent): void {
    const { context } = this;
    if ('progress' in line) {
      this.counts.set(run, line.progress);
      this.reportProgress();
    } else if ('log' in line) context.log(line.log.level, `node ${node}: ${line.log.text}`);
    else if ('message' in line) context.message(line.message);
    else if ('partial' in line) this.partial.push(line.partial);
    else if ('begun' in line) this.barrierTasks.get(run)?.begun();
    else if ('word' in line) this.collectAllGather(node, run, line.word);
  }

  private reportProgress(): void {
    const all = [...this.counts.values()];
    const sum = (of: keyof JobProgress) => all.reduce((total, counts) => total + (counts[of] ?? 0), 0);
    this.context.progress({
      total: sum('total'),
      done: sum('done'),
      failed: sum('failed'),
      skipped: sum('skipped'),
      ...combinedProgress(all),
      isReset: true,
    });
  }
}

/** True if another node might succeed. */
function isNodeFailure(error: unknown): boolean {
  return isNodeLost(error) || (error instanceof TilewrightError && error.status === 503);
}

/** True if the node does no more work for the job. */
function isNodeLost(error: unknown): boolean {
  return [peerFailed, commitNotInLog, slotNotHeld, replicaBehind, jobInterrupted].some((one) =>
    one.is(error),
  );
}
