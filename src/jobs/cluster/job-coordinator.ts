/** Leads the work of a job: each owner does that of its slots, and others do that of an owner that fails. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  answeringOwners,
  askForLines,
  type Cluster,
  commitMissing,
  everySlot,
  notHeld,
  type Peer,
  type Peers,
  peerFailed,
  replicaBehind,
  SlotSet,
} from '../../dht/index.js';
import { messageOf, receivedError, TilewrightError } from '../../errors.js';
import { type Check, messageCheck, objectOf } from '../../json-schema.js';
import { jobDismissed, jobInterrupted, noWorker, runLost } from '../errors.js';
import {
  type ConcludeContext,
  concluded,
  type JobProgress,
  type Process,
  runWhole,
  type WholeContext,
} from '../local/process.js';
import { balanced, type WorkedSlot } from './task-assignment.js';
import {
  CANCEL_PATH,
  lineCheck,
  newRun,
  objectOfRun,
  type ShareLine,
  type ShareProgress,
  type ShareRequest,
  type ShareResult,
  type Shares,
  shareOf,
  WORDS_PATH,
  WORK_PATH,
} from './task-executor.js';

/** A node that is silent for so long is taken for dead, ms. It tells each second that it lives. */
const SILENCE = 5000;
/** How long nodes are looked for that do what others could not, ms, and how often. */
const PATIENCE = 120_000;
const PAUSE = 1000;
const CANCEL_PATIENCE = 5000;
const CANCEL_PAUSE = 100;
/** Words may have megabytes, and the node may be busy with tiles. */
const WORDS_PATIENCE = 60_000;
/** How long this node waits for what the others have committed, ms. */
const CATCH_UP = 600_000;

const checkKnown = messageCheck(objectOf({ known: { type: 'boolean' } }));
const checkHeard = messageCheck(objectOf({}));

export interface DistributeOptions {
  cluster: Cluster;
  peers: Peers;
  /** Shares of this node's own. */
  shares: Shares;
}

const NO_OWNER = 'none of their owners runs';

/** A run of a share that goes on together with others. */
interface TogetherRun {
  node: string;
  /** How many go together. */
  of: number;
  begun: () => void;
  word?: { word: unknown };
}

/** Does the work of a process that goes by cells where the cells are, and that of others here. */
export async function distribute(
  options: DistributeOptions,
  process: Process,
  inputs: unknown,
  context: WholeContext,
): Promise<unknown> {
  if (!process.merge) return runWhole(process, inputs, context);
  return new Distribution(options, process, inputs, context).run();
}

/**
 * The work of one job. Invariant: `parts` has the results of runs of shares whose slots are disjoint; when `run` resolves they are
 * all slots.
 */
class Distribution {
  private readonly parts: unknown[] = [];
  /** What shares had made that were cut off. */
  private readonly partial: unknown[] = [];
  private readonly counts = new Map<string, ShareProgress>();
  /** Where all go together: the runs by their names, in the order in which they were begun. */
  private readonly runs = new Map<string, TogetherRun>();
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
    private readonly options: DistributeOptions,
    private readonly process: Process,
    private readonly inputs: unknown,
    private readonly context: WholeContext,
  ) {
    this.signal = AbortSignal.any([context.signal, this.failed.signal]);
    this.since = options.cluster.replica.applied;
    this.checkLine = lineCheck(process);
  }

  async run(): Promise<unknown> {
    const { context } = this;
    context.partial(() => this.process.merge?.([...this.parts, ...this.partial]));
    this.bytes = await this.bytesOfSlots();
    if (this.process.goesTogether?.(this.inputs)) await this.workTogether();
    else await this.workOn([...everySlot], new Set(), Infinity);
    return concluded(this.process, this.parts, this.concludeContext(), this.inputs);
  }

  /** That of the job, but files go to the store, where all nodes find them. */
  private concludeContext(): ConcludeContext {
    const { context, options, signal } = this;
    const run = { job: context.id, run: newRun() };
    return {
      ...context,
      file: async (name) => context.file(name, await options.shares.publish(run, name, signal)),
    };
  }

  /** Has owners do the work of slots, each that of its own; `deadline` is when to give up. */
  private async workOn(slots: number[], avoided: Set<string>, deadline: number): Promise<void> {
    const { shares, unanswered } = this.route(slots, avoided);
    const works = [...shares].map(([node, own]) => this.share(node, own, avoided, deadline));
    if (unanswered.length > 0) works.push(this.later(unanswered, deadline, NO_OWNER));
    else if (this.isWaiting) this.wait(0);
    await this.all(works);
  }

  /** All have ended when this does; the first that fails ends the others. */
  private async all(works: Promise<void>[]): Promise<void> {
    const ends = await Promise.allSettled(works.map((work) => work.catch((error) => this.fail(error))));
    for (const end of ends)
      if (end.status === 'rejected')
        throw this.context.signal.aborted ? this.context.signal.reason : this.failed.signal.reason;
  }

  /** Has all owners work at once, each on its slots, until they are done or one is lost. */
  private async workTogether(): Promise<void> {
    const shares = [...(await this.routeAll())].sort(([a], [b]) => (a < b ? -1 : 1));
    const works: Promise<void>[] = [];
    // One after another in an order that all leaders have: else each of two jobs could hold the turn that the other waits for.
    for (const [node, slots] of shares)
      await new Promise<void>((begun) => {
        const request = this.request(slots);
        this.runs.set(request.run, { node, of: shares.length, begun });
        const work = this.partOf(node, request).catch((error) =>
          this.fail(isLost(error) ? runLost.because(error, node, messageOf(error)) : error),
        );
        works.push(work);
        work.then(begun, begun);
      });
    await this.all(works);
  }

  private async routeAll(): Promise<Map<string, number[]>> {
    for (const until = performance.now() + PATIENCE; ; ) {
      const { shares, unanswered } = this.route([...everySlot], new Set());
      if (unanswered.length === 0) {
        if (this.isWaiting) this.wait(0);
        return shares;
      }
      if (performance.now() > until) throw noWorker(unanswered.length, NO_OWNER);
      this.wait(unanswered.length);
      await sleep(PAUSE, undefined, { signal: this.signal });
    }
  }

  /** When every run has said its word, all are told all of them. */
  private meet(node: string, run: string, word: unknown): void {
    const { cluster, peers, shares } = this.options;
    const saying = this.runs.get(run);
    if (!saying) throw this.failureOf(node, 'it waits for other nodes, which this job does not need');
    saying.word = { word };
    const all = [...this.runs];
    const words = all.flatMap(([, { word }]) => (word ? [word.word] : []));
    if (words.length < all[0]![1].of) return;
    // They may meet again.
    for (const [, run] of all) delete run.word;
    const tell = async (run: string, node: string) => {
      if (node === cluster.self) shares.hear(run, words);
      else await peers.ask(this.peer(node), WORDS_PATH, { run, words }, WORDS_PATIENCE, checkHeard);
    };
    for (const [run, { node }] of all)
      tell(run, node).catch((error) => this.failed.abort(runLost.because(error, node, messageOf(error))));
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
  private async later(slots: number[], deadline: number, detail: string): Promise<void> {
    const until = Math.min(deadline, performance.now() + PATIENCE);
    if (performance.now() + PAUSE > until) throw noWorker(slots.length, detail);
    this.wait(slots.length);
    await sleep(PAUSE, undefined, { signal: this.signal });
    await this.workOn(slots, new Set(), until);
  }

  /** Says that the job waits for owners of so many slots, or no longer; in its log at the begin alone. */
  private wait(slots: number): void {
    const { context } = this;
    const text = slots > 0 ? `waits for nodes that hold ${slots} slots and are away` : '';
    if (slots > 0 && !this.isWaiting) context.log('warning', text);
    this.isWaiting = slots > 0;
    context.message(text);
  }

  /** Asks all nodes. Without an answer the work is divided by the first owners, which is less even but as correct. */
  private async bytesOfSlots(): Promise<ArrayLike<number>> {
    try {
      return (await this.options.cluster.survey()).bytes;
    } catch (error) {
      this.context.log('warning', `the bytes of the slots are unknown: ${messageOf(error)}`);
      return [];
    }
  }

  /** Slots by the owner that is to do their work, of the owners that run, and slots without one. */
  private route(slots: number[], avoided: ReadonlySet<string>) {
    const { placement, nodes, self } = this.options.cluster;
    const present = new Set(nodes.map(({ id }) => id)).add(self);
    const worked: WorkedSlot[] = [];
    const unanswered: number[] = [];
    for (const slot of slots) {
      const owners = answeringOwners(placement.slots[slot]!).map(({ node }) => node);
      const able = owners.filter((node) => present.has(node) && !avoided.has(node));
      if (able.length === 0) unanswered.push(slot);
      else worked.push({ slot, nodes: able, bytes: this.bytes[slot] ?? 0 });
    }
    const weights = new Map(placement.nodes.map(({ id, weight }) => [id, weight]));
    return { shares: balanced(worked, (node) => weights.get(node) ?? 1), unanswered };
  }

  private request(slots: number[]): ShareRequest {
    return {
      job: this.context.id,
      run: newRun(),
      process: this.process.id,
      inputs: this.inputs,
      slots: new SlotSet(slots).toText(),
      since: this.since,
    };
  }

  /** Keeps what a node makes of a share. */
  private async partOf(node: string, request: ShareRequest): Promise<void> {
    const { context } = this;
    const begun = performance.now();
    const { part, files, applied } = await this.ask(node, request);
    for (const [name, object] of Object.entries(files))
      if (object !== objectOfRun(request, name))
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
    return this.options.cluster.replica.waitForNamed(seq, CATCH_UP, this.signal).catch((error) => {
      // This node is behind, so no other owner can do better.
      if (replicaBehind.is(error)) this.fail(error);
      throw error;
    });
  }

  private async share(node: string, slots: number[], avoided: Set<string>, deadline: number): Promise<void> {
    const { context } = this;
    const request = this.request(slots);
    try {
      await this.partOf(node, request);
    } catch (error) {
      this.signal.throwIfAborted();
      if (!isOfTheNode(error)) throw error;
      const detail = messageOf(error);
      context.log(
        'warning',
        `node ${node}: its share of ${slots.length} slots is given to others: ${detail}`,
      );
      this.counts.delete(request.run);
      this.tell();
      avoided.add(node);
      const until = Math.min(deadline, performance.now() + PATIENCE);
      if (this.route(slots, avoided).unanswered.length === 0) return this.workOn(slots, avoided, until);
      return this.later(slots, until, detail);
    }
  }

  private async ask(node: string, request: ShareRequest): Promise<ShareResult> {
    const { cluster, peers, shares } = this.options;
    if (node === cluster.self)
      return shares.run(request, (line) => this.hear(node, request.run, line), this.signal);
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
        path: WORK_PATH,
        message: request,
        check: this.checkLine,
        silence: SILENCE,
        signal: cut.signal,
      };
      for await (const line of askForLines<ShareLine>(message)) {
        if ('result' in line) return line.result;
        if ('error' in line) throw receivedError(line.error);
        this.hear(node, request.run, line);
      }
      throw peerFailed(node, peer.url, 'it broke off');
    } finally {
      this.signal.removeEventListener('abort', stop);
      cut.abort();
    }
  }

  /** Has a node end its share, or goes on without it; `cut` is raised when it has ended. */
  private async stop(node: string, { run, job }: ShareRequest, cut: AbortController): Promise<void> {
    const { cluster, peers } = this.options;
    const peer = cluster.peer(node);
    const isCancelled = jobDismissed.is(this.signal.reason);
    try {
      if (!peer || !isCancelled) throw this.signal.reason;
      // It may come there before the share.
      for (let known = false; !known && !cut.signal.aborted; ) {
        ({ known } = await peers.ask<{ known: boolean }>(
          peer,
          CANCEL_PATH,
          { run, job },
          CANCEL_PATIENCE,
          checkKnown,
        ));
        if (!known) await sleep(CANCEL_PAUSE);
      }
    } catch {
      // It cannot be asked, and ends by itself when nobody listens any more.
      cut.abort(this.signal.reason);
    }
  }

  private hear(node: string, run: string, line: ShareLine): void {
    const { context } = this;
    if ('progress' in line) {
      this.counts.set(run, line.progress);
      this.tell();
    } else if ('log' in line) context.log(line.log.level, `node ${node}: ${line.log.text}`);
    else if ('message' in line) context.message(line.message);
    else if ('partial' in line) this.partial.push(line.partial);
    else if ('begun' in line) this.runs.get(run)?.begun();
    else if ('word' in line) this.meet(node, run, line.word);
  }

  private tell(): void {
    const all = [...this.counts.values()];
    const sum = (of: keyof JobProgress) => all.reduce((total, counts) => total + (counts[of] ?? 0), 0);
    this.context.progress({
      total: sum('total'),
      done: sum('done'),
      failed: sum('failed'),
      skipped: sum('skipped'),
      ...shareOf(all),
      anew: true,
    });
  }
}

/** Whether another node may do better. */
function isOfTheNode(error: unknown): boolean {
  return isLost(error) || (error instanceof TilewrightError && error.status === 503);
}

/** Whether a node does no more work for the job. */
function isLost(error: unknown): boolean {
  return [peerFailed, commitMissing, notHeld, replicaBehind, jobInterrupted].some((one) => one.is(error));
}
