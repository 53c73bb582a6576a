/** Leads the work of a job: each owner does that of its slots, and others do that of an owner that fails. */
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
import { type Check, messageCheck, objectOf } from '../../json-schema.js';
import { jobDismissed, jobInterrupted, noWorkerAvailable, taskLost } from '../errors.js';
import {
  type ConcludeContext,
  concludeResults,
  type FullJobContext,
  type JobProgress,
  type Process,
  runLocally,
} from '../local/process.js';
import { assignSlots, type SlotWork } from './task-assignment.js';
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
} from './task-executor.js';

/** A node that is silent for so long is taken for dead, ms. It tells each second that it lives. */
const NODE_IDLE_TIMEOUT_MS = 5000;
/** How long nodes are looked for that do what others could not, ms, and how often. */
const NO_WORKER_TIMEOUT_MS = 120_000;
const RETRY_INTERVAL_MS = 1000;
const CANCEL_TIMEOUT_MS = 5000;
const CANCEL_INTERVAL_MS = 100;
/** Words may have megabytes, and the node may be busy with tiles. */
const ALL_GATHER_TIMEOUT_MS = 60_000;
/** How long this node waits for what the others have committed, ms. */
const CATCH_UP_TIMEOUT_MS = 600_000;

const checkCancelReply = messageCheck(objectOf({ known: { type: 'boolean' } }));
const checkAllGatherReply = messageCheck(objectOf({}));

export interface CoordinateOptions {
  cluster: Cluster;
  peers: PeerClient;
  /** Shares of this node's own. */
  tasks: TaskExecutor;
}

const NO_OWNER = 'none of their owners runs';

/** A run of a share that goes on together with others. */
interface BarrierTask {
  node: string;
  /** How many go together. */
  of: number;
  begun: () => void;
  word?: { word: unknown };
}

/** Does the work of a process that goes by cells where the cells are, and that of others here. */
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
 * The work of one job. Invariant: `parts` has the results of runs of shares whose slots are disjoint; when `run` resolves they are
 * all slots.
 */
class JobCoordinator {
  private readonly parts: unknown[] = [];
  /** What shares had made that were cut off. */
  private readonly partial: unknown[] = [];
  private readonly counts = new Map<string, TaskProgress>();
  /** Where all go together: the runs by their names, in the order in which they were begun. */
  private readonly barrierTasks = new Map<string, BarrierTask>();
  /** Ended when one share fails for good, or the job ends. */
  private readonly failed = new AbortController();
  private readonly signal: AbortSignal;
  private readonly since: number;
  /** For nodes that are away. */
  private isWaiting = false;
  private readonly checkLine: Check;
  /** Bytes of the tiles of each slot, when the job began. */
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

  /** That of the job, but files go to the store, where all nodes find them. */
  private concludeContext(): ConcludeContext {
    const { context, options, signal } = this;
    const run = { job: context.id, run: newTaskId() };
    return {
      ...context,
      file: async (name) => context.file(name, await options.tasks.publish(run, name, signal)),
    };
  }

  /** Has owners do the work of slots, each that of its own; `deadline` is when to give up. */
  private async runOnOwners(slots: number[], avoided: Set<string>, deadline: number): Promise<void> {
    const { shares, unanswered } = this.route(slots, avoided);
    const works = [...shares].map(([node, own]) => this.runTask(node, own, avoided, deadline));
    if (unanswered.length > 0) works.push(this.retryLater(unanswered, deadline, NO_OWNER));
    else if (this.isWaiting) this.reportWaiting(0);
    await this.awaitAll(works);
  }

  /** All have ended when this does; the first that fails ends the others. */
  private async awaitAll(works: Promise<void>[]): Promise<void> {
    const ends = await Promise.allSettled(works.map((work) => work.catch((error) => this.fail(error))));
    for (const end of ends)
      if (end.status === 'rejected')
        throw this.context.signal.aborted ? this.context.signal.reason : this.failed.signal.reason;
  }

  /** Has all owners work at once, each on its slots, until they are done or one is lost. */
  private async runBarrierTasks(): Promise<void> {
    const shares = [...(await this.routeAll())].sort(([a], [b]) => (a < b ? -1 : 1));
    const works: Promise<void>[] = [];
    // One after another in an order that all leaders have: else each of two jobs could hold the turn that the other waits for.
    for (const [node, slots] of shares)
      await new Promise<void>((begun) => {
        const request = this.request(slots);
        this.barrierTasks.set(request.run, { node, of: shares.length, begun });
        const work = this.runTaskOn(node, request).catch((error) =>
          this.fail(isNodeLost(error) ? taskLost.because(error, node, messageOf(error)) : error),
        );
        works.push(work);
        work.then(begun, begun);
      });
    await this.awaitAll(works);
  }

  private async routeAll(): Promise<Map<string, number[]>> {
    for (const until = performance.now() + NO_WORKER_TIMEOUT_MS; ; ) {
      const { shares, unanswered } = this.route([...ALL_SLOTS], new Set());
      if (unanswered.length === 0) {
        if (this.isWaiting) this.reportWaiting(0);
        return shares;
      }
      if (performance.now() > until) throw noWorkerAvailable(unanswered.length, NO_OWNER);
      this.reportWaiting(unanswered.length);
      await sleep(RETRY_INTERVAL_MS, undefined, { signal: this.signal });
    }
  }

  /** When every run has said its word, all are told all of them. */
  private collectAllGather(node: string, run: string, word: unknown): void {
    const { cluster, peers, tasks } = this.options;
    const saying = this.barrierTasks.get(run);
    if (!saying) throw this.failureOf(node, 'it waits for other nodes, which this job does not need');
    saying.word = { word };
    const all = [...this.barrierTasks];
    const words = all.flatMap(([, { word }]) => (word ? [word.word] : []));
    if (words.length < all[0]![1].of) return;
    // They may meet again.
    for (const [, run] of all) delete run.word;
    const tell = async (run: string, node: string) => {
      if (node === cluster.self) tasks.deliverAllGather(run, words);
      else
        await peers.call(
          this.peer(node),
          ALL_GATHER_PATH,
          { run, words },
          ALL_GATHER_TIMEOUT_MS,
          checkAllGatherReply,
        );
    };
    for (const [run, { node }] of all)
      tell(run, node).catch((error) => this.failed.abort(taskLost.because(error, node, messageOf(error))));
  }

  private failureOf(node: string, detail: string): TilewrightError {
    return peerFailed(node, this.options.cluster.peer(node)?.url ?? 'an unknown address', detail);
  }

  /** Throws TW_DHT_PEER. */
  private peer(node: string): Peer {
    const peer = this.options.cluster.peer(node);
    if (!peer) throw this.failureOf(node, 'it has not been seen');
    return peer;
  }

  private fail(error: unknown): never {
    this.failed.abort(error);
    throw error;
  }

  /** Tries again after a pause, with all nodes. */
  private async retryLater(slots: number[], deadline: number, detail: string): Promise<void> {
    const until = Math.min(deadline, performance.now() + NO_WORKER_TIMEOUT_MS);
    if (performance.now() + RETRY_INTERVAL_MS > until) throw noWorkerAvailable(slots.length, detail);
    this.reportWaiting(slots.length);
    await sleep(RETRY_INTERVAL_MS, undefined, { signal: this.signal });
    await this.runOnOwners(slots, new Set(), until);
  }

  /** Says that the job waits for owners of so many slots, or no longer; in its log at the begin alone. */
  private reportWaiting(slots: number): void {
    const { context } = this;
    const text = slots > 0 ? `waits for nodes that hold ${slots} slots and are away` : '';
    if (slots > 0 && !this.isWaiting) context.log('warning', text);
    this.isWaiting = slots > 0;
    context.message(text);
  }

  /** Asks all nodes. Without an answer the work is divided by the first owners, which is less even but as correct. */
  private async bytesOfSlots(): Promise<ArrayLike<number>> {
    try {
      return (await this.options.cluster.stats()).bytes;
    } catch (error) {
      this.context.log('warning', `the bytes of the slots are unknown: ${messageOf(error)}`);
      return [];
    }
  }

  /** Slots by the owner that is to do their work, of the owners that run, and slots without one. */
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
    const weights = new Map(placement.nodes.map(({ id, weight }) => [id, weight]));
    return { shares: assignSlots(worked, (node) => weights.get(node) ?? 1), unanswered };
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

  /** Keeps what a node makes of a share. */
  private async runTaskOn(node: string, request: TaskRequest): Promise<void> {
    const { context } = this;
    const begun = performance.now();
    const { part, files, applied } = await this.requestTask(node, request);
    for (const [name, object] of Object.entries(files))
      if (object !== taskObjectName(request, name))
        throw this.failureOf(node, `${object} is not a file of its share`);
    await this.apply(applied);
    this.parts.push(part);
    for (const [name, object] of Object.entries(files)) await context.file(name, object);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    const { size } = SlotSet.fromText(request.slots);
    context.log('info', `node ${node}: its share of ${size} slots is done after ${seconds} s`);
  }

  /**
   * Waits for a commit that a node has applied, so that a client that sees the end of the job here also sees here what the job made. Throws
   * TW_DHT_NO_COMMIT.
   */
  private apply(seq: number): Promise<void> {
    return this.options.cluster.replica
      .waitForNamedCommit(seq, CATCH_UP_TIMEOUT_MS, this.signal)
      .catch((error) => {
        // This node is behind, so no other owner can do better.
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
        `node ${node}: its share of ${slots.length} slots is given to others: ${detail}`,
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
    // A job that is cancelled waits for what the owners say of it; one that is cut off does not.
    const cut = new AbortController();
    const stop = () => void this.stop(node, request, cut);
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
        signal: cut.signal,
      };
      for await (const line of streamLines<TaskEvent>(message)) {
        if ('result' in line) return line.result;
        if ('error' in line) throw fromErrorDocument(line.error);
        this.onTaskEvent(node, request.run, line);
      }
      throw peerFailed(node, peer.url, 'it broke off');
    } finally {
      this.signal.removeEventListener('abort', stop);
      cut.abort();
    }
  }

  /** Has a node end its share, or goes on without it; `cut` is raised when it has ended. */
  private async stop(node: string, { run, job }: TaskRequest, cut: AbortController): Promise<void> {
    const { cluster, peers } = this.options;
    const peer = cluster.peer(node);
    const isCancelled = jobDismissed.is(this.signal.reason);
    try {
      if (!peer || !isCancelled) throw this.signal.reason;
      // It may come there before the share.
      for (let known = false; !known && !cut.signal.aborted; ) {
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
      // It cannot be asked, and ends by itself when nobody listens any more.
      cut.abort(this.signal.reason);
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
      anew: true,
    });
  }
}

/** Whether another node may do better. */
function isNodeFailure(error: unknown): boolean {
  return isNodeLost(error) || (error instanceof TilewrightError && error.status === 503);
}

/** Whether a node does no more work for the job. */
function isNodeLost(error: unknown): boolean {
  return [peerFailed, commitNotInLog, slotNotHeld, replicaBehind, jobInterrupted].some((one) =>
    one.is(error),
  );
}
