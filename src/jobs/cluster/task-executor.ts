/** Shares of jobs: the work on the cells of some slots, done by a node that owns them. */
import { rm } from 'node:fs/promises';
import { Semaphore } from '../../async/index.js';
import { type Cluster, cellSlotLookup, SlotSet, slotNotHeld } from '../../dht/index.js';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  messageOf,
  TilewrightError,
  toErrorDocument,
} from '../../errors.js';
import { type Check, COUNT, messageCheck, NUMBER, objectOf, requestCheck, TEXT } from '../../json-schema.js';
import {
  FILE_NAME_SCHEMA,
  type LogLevel,
  newVersion,
  type ObjectStore,
  type Storage,
} from '../../storage/index.js';
import { badTaskInputs, jobDismissed, jobFailed, jobInterrupted } from '../errors.js';
import type { JobContext, JobProgress, Process } from '../local/process.js';
import { AllGather } from './all-gather.js';

/** What an owner is asked to do. */
export interface TaskRequest {
  job: string;
  /** Names this run of the share, of which there may be several. */
  run: string;
  process: string;
  inputs: unknown;
  /** The slots whose cells are worked on, as text of a `SlotSet`. */
  slots: string;
  /** The last commit that must be applied. */
  since: number;
}

/** What comes of it. */
export interface TaskResult {
  part: unknown;
  /** Objects of the shared store, by the names of the files that they are. */
  files: Record<string, string>;
  /** The last commit that was applied at its end. */
  applied: number;
}

export type TaskProgress = Partial<JobProgress> & { share?: number };

/** The share, 0 to 1, of all runs of a job together, where some tell theirs: each has the weight of what it does not skip. */
export function combinedProgress(all: TaskProgress[]): { share?: number } {
  if (!all.some(({ share }) => share !== undefined)) return {};
  let [work, worked] = [0, 0];
  for (const { total = 0, skipped = 0, done = 0, failed = 0, share } of all) {
    work += total - skipped;
    worked += share === undefined ? done + failed : share * (total - skipped);
  }
  return work > 0 ? { share: worked / work } : {};
}

/** What a share tells, in this order; at last its result or its error. */
export type TaskEvent =
  | { beat: true }
  /** Its turn has come. */
  | { begun: true }
  | { progress: TaskProgress }
  | { message: string }
  | { log: { level: LogLevel; text: string } }
  /** It waits for what the others say. */
  | { word: unknown }
  /** What was made until the work was cut off. */
  | { partial: unknown }
  | { result: TaskResult }
  | { error: ErrorDocument };

const PROGRESS_SCHEMA = objectOf(
  {},
  { total: NUMBER, done: NUMBER, failed: NUMBER, skipped: NUMBER, share: NUMBER },
);
const RESULT_SCHEMA = objectOf({
  part: {},
  files: { type: 'object', propertyNames: FILE_NAME_SCHEMA, additionalProperties: TEXT },
  applied: COUNT,
});
const LOG_SCHEMA = objectOf({ level: { enum: ['info', 'warning', 'error'] }, text: TEXT });
/** A newer version may send other kinds of line. */
const checkLine = messageCheck(
  objectOf(
    {},
    {
      progress: PROGRESS_SCHEMA,
      message: TEXT,
      log: LOG_SCHEMA,
      result: RESULT_SCHEMA,
      error: ERROR_DOCUMENT_SCHEMA,
    },
  ),
);

/** The check of the lines of another node about a share of a process. */
export function eventCheck({ part = {} }: Process): Check {
  const checkPart = messageCheck(part);
  return (value) => {
    const fault = checkLine(value);
    if (fault !== undefined) return fault;
    const line = value as TaskEvent;
    if ('result' in line) return checkPart(line.result.part);
    return 'partial' in line ? checkPart(line.partial) : undefined;
  };
}

/** The object that holds a file of a run. */
export const taskObjectName = ({ job, run }: Pick<TaskRequest, 'job' | 'run'>, name: string) =>
  `jobs/${job}/${run}/${name}`;

/** Where shares are asked for, and where they are cancelled. */
export const TASK_PATH = '/cluster/internal/work';
export const CANCEL_TASK_PATH = '/cluster/internal/work/cancel';
/** Where they are told what all have said. */
export const ALL_GATHER_PATH = '/cluster/internal/work/words';

/** How long an owner that is behind waits for the commit that is asked for, ms. */
const CATCH_UP_TIMEOUT_MS = 10_000;
/** Progress is told at most so often, ms. */
const PROGRESS_INTERVAL_MS = 2000;

export interface TaskExecutorOptions {
  storage: Storage;
  objects: ObjectStore;
  cluster: Cluster;
  processes: Process[];
}

/** The shares that this node works on, one after another. */
export class TaskExecutor {
  private readonly queue = new Semaphore(1);
  private readonly running = new Map<string, { job: string; stop: AbortController }>();
  private readonly allGather = new AllGather();
  /** Checks the inputs of a process, by its id. */
  private readonly inputChecks: ReadonlyMap<string, Check>;

  constructor(private readonly options: TaskExecutorOptions) {
    this.inputChecks = new Map(options.processes.map(({ id, inputs }) => [id, requestCheck(inputs)]));
  }

  /** Ends a run whose job was cancelled. One that is not known, false, has ended or is still to come. */
  cancel(run: string, job: string): boolean {
    const running = this.running.get(run);
    running?.stop.abort(jobDismissed(job));
    return running !== undefined;
  }

  /** Moves a file of a job's results from this node to the store, as one of a run. Returns its object. Throws the TW_STORE_ errors. */
  async publish(run: Pick<TaskRequest, 'job' | 'run'>, name: string, signal: AbortSignal): Promise<string> {
    const { storage, objects } = this.options;
    const object = taskObjectName(run, name);
    const path = storage.results.path(run.job, name);
    await objects.put(object, { file: path }, { signal });
    await rm(path);
    return object;
  }

  /** Whether this node works on a share of the job, or is about to. */
  isWorkedOn(job: string): boolean {
    return [...this.running.values()].some((running) => running.job === job);
  }

  /** What all runs of a job have said to each other. */
  deliverAllGather(run: string, words: unknown[]): void {
    this.allGather.deliver(run, words);
  }

  /** Ends all of them, because the node stops. */
  close(): void {
    for (const { stop } of this.running.values()) stop.abort(jobInterrupted('of another node'));
  }

  /**
   * Does a share. Throws TW_JOB_INPUTS, TW_DHT_BEHIND, TW_DHT_NOT_HELD if this node does not have all of the slots from the start to the
   * end, and what the process throws.
   */
  async run(
    request: TaskRequest,
    tell: (line: TaskEvent) => void,
    stopped: AbortSignal,
  ): Promise<TaskResult> {
    const { run, job } = request;
    const stop = new AbortController();
    this.running.set(run, { job, stop });
    const signal = AbortSignal.any([stop.signal, stopped]);
    try {
      return await this.queue.run(() => this.runTask(request, tell, signal), signal);
    } finally {
      this.running.delete(run);
    }
  }

  private async runTask(
    { job, run, process: id, inputs, slots: text, since }: TaskRequest,
    tell: (line: TaskEvent) => void,
    signal: AbortSignal,
  ): Promise<TaskResult> {
    tell({ begun: true });
    const { storage, cluster, processes } = this.options;
    const { replica, prefixLengths } = cluster;
    const process = processes.find((one) => one.id === id);
    if (!process?.merge)
      throw jobFailed(`process ${id} is not known here; run the same version on all nodes`);
    const fault = this.inputChecks.get(id)!(inputs);
    if (fault !== undefined) throw badTaskInputs(id, fault);
    await process.check?.(inputs);
    const slots = SlotSet.fromText(text);
    await replica.waitForCommit(since, CATCH_UP_TIMEOUT_MS, signal);
    const requireSlots = () => {
      for (const slot of slots) if (!replica.hasSlot(slot)) throw slotNotHeld(slot);
    };
    requireSlots();
    const begun = performance.now();
    // A leader of an earlier version refuses parts without `seconds`.
    const sent = (part: unknown) => ({ seconds: (performance.now() - begun) / 1000, ...(part as object) });
    const files: TaskResult['files'] = {};
    const slotOfCell = cellSlotLookup(prefixLengths);
    let partial: (() => unknown) | undefined;
    let progress: TaskProgress = {};
    let telling: NodeJS.Timeout | undefined;
    const tellProgress = () => {
      clearTimeout(telling);
      telling = undefined;
      tell({ progress });
    };
    const context: JobContext = {
      id: job,
      signal,
      isMine: (cell) => slots.has(slotOfCell(cell)),
      allGather: <T>(word: T) => {
        const words = this.allGather.wait<T>(run, signal);
        tell({ word });
        return words;
      },
      progress: (now) => {
        progress = { ...progress, ...now };
        telling ??= setTimeout(tellProgress, PROGRESS_INTERVAL_MS);
      },
      message: (message) => tell({ message }),
      log: (level, text) => tell({ log: { level, text } }),
      partial: (results) => {
        partial = results;
      },
      file: async (name) => {
        files[name] = await this.publish({ job, run }, name, signal);
      },
    };
    try {
      const part = await process.run(inputs, context);
      // What went meanwhile may have been missed.
      requireSlots();
      return { part: sent(part), files, applied: replica.applied };
    } catch (error) {
      if (jobDismissed.is(signal.reason) && partial) tell({ partial: sent(partial()) });
      throw error;
    } finally {
      tellProgress();
      // Where this node or the one that leads is cut off, the job may go on from its files.
      if (!jobInterrupted.is(signal.reason))
        await storage.scratch
          .remove(job)
          .catch((error) => tell({ message: `files of the job could not be removed: ${messageOf(error)}` }));
    }
  }
}

/** A name for a run of a share. */
export const newTaskId = newVersion;

/** What is told of an error to the node that leads the job. */
export function taskErrorEvent(error: unknown): TaskEvent {
  const known = error instanceof TilewrightError ? error : jobFailed.because(error, messageOf(error));
  return { error: toErrorDocument(known) };
}
