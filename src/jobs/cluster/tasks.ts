/** Tasks of jobs: the work on the cells of some slots, done by a node that owns these slots. */

import { rm } from 'node:fs/promises';
import { raceAbort, Semaphore } from '../../async/index.js';
import { type Cluster, cellSlotLookup, SlotSet, slotNotHeld } from '../../dht/index.js';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  messageOf,
  TilewrightError,
  toErrorDocument,
} from '../../errors.js';
import {
  FILE_NAME_SCHEMA,
  type LogLevel,
  newVersion,
  type ObjectStore,
  type Storage,
} from '../../storage/index.js';
import {
  type Check,
  COUNT,
  messageCheck,
  NUMBER,
  objectOf,
  requestCheck,
  TEXT,
} from '../../utils/json-schema.js';
import { badTaskInputs, jobDismissed, jobFailed, jobInterrupted } from '../errors.js';
import type { JobContext, JobProgress, Process } from '../process.js';

/**
 * The meeting point of the runs of a job that wait for each other. Invariant: for each waiting run, its continuation is known; a run waits
 * for one meeting at a time.
 */
export class AllGather {
  private readonly waiting = new Map<string, (values: unknown[]) => void>();

  /** Resolves to the values of all runs of the job, once `deliver` gets them. Rejects with the reason of the signal. */
  async wait<T>(run: string, signal: AbortSignal): Promise<T[]> {
    const delivered = new Promise<T[]>((resolve) => {
      this.waiting.set(run, (values) => resolve(values as T[]));
    });
    try {
      return await raceAbort(delivered, signal);
    } finally {
      this.waiting.delete(run);
    }
  }

  /** Delivers the values of all runs of a job. Ignored if `run` does not wait, because it has ended. */
  deliver(run: string, values: unknown[]): void {
    this.waiting.get(run)?.(values);
  }
}

/** A request to do a task. */
export interface TaskRequest {
  job: string;
  /** Id of this run of the task, which may be repeated. */
  run: string;
  process: string;
  inputs: unknown;
  /** The slots to work on, as text of a `SlotSet`. */
  slots: string;
  /** The last commit that must be applied. */
  since: number;
}

/** The result of a task. */
export interface TaskResult {
  part: unknown;
  /** Objects of the object store, by file name. */
  files: Record<string, string>;
  /** The last commit that was applied at the end of the task. */
  applied: number;
}

export type TaskProgress = Partial<JobProgress> & { share?: number };

/** The overall fraction of done work, 0 to 1, if any run reports one; runs are weighted by their work without skipped parts. */
export function combinedProgress(all: TaskProgress[]): { share?: number } {
  if (!all.some(({ share }) => share !== undefined)) return {};
  let work = 0;
  let worked = 0;
  for (const { total = 0, skipped = 0, done = 0, failed = 0, share } of all) {
    work += total - skipped;
    worked += share === undefined ? done + failed : share * (total - skipped);
  }
  return work > 0 ? { share: worked / work } : {};
}

/** Events of a task, in this order; the last one is its result or its error. */
export type TaskEvent =
  | { beat: true }
  /** The task has started after its turn in the queue has come. */
  | { begun: true }
  | { progress: TaskProgress }
  | { message: string }
  | { log: { level: LogLevel; text: string } }
  /** The task waits for the values (`words`) of the other tasks. */
  | { word: unknown }
  /** Partial results of a cancelled task. */
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
/** Other kinds of line are accepted, because a newer version may send them. */
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

/** The check of the event lines that another node sends about a task of a process. */
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

/** The name of the object with a file of a run. */
export const taskObjectName = ({ job, run }: Pick<TaskRequest, 'job' | 'run'>, name: string) =>
  `jobs/${job}/${run}/${name}`;

export const TASK_PATH = '/cluster/internal/work';
export const CANCEL_TASK_PATH = '/cluster/internal/work/cancel';
export const ALL_GATHER_PATH = '/cluster/internal/work/words';

/** How long an owner that lags behind waits for the requested commit. */
const CATCH_UP_TIMEOUT_MS = 10_000;
/** Minimum interval between progress events. */
const PROGRESS_INTERVAL_MS = 2000;

interface TaskExecutorOptions {
  storage: Storage;
  objects: ObjectStore;
  cluster: Cluster;
  processes: Process[];
}

/** Runs the tasks of this node, one after another. */
export class TaskExecutor {
  private readonly queue = new Semaphore(1);
  private readonly running = new Map<string, { job: string; stop: AbortController }>();
  private readonly allGather = new AllGather();
  /** Checks the inputs of a process, by its id. */
  private readonly inputChecks: ReadonlyMap<string, Check>;

  constructor(private readonly options: TaskExecutorOptions) {
    this.inputChecks = new Map(options.processes.map(({ id, inputs }) => [id, requestCheck(inputs)]));
  }

  /** Ends a run whose job was cancelled. Returns false if the run is unknown, because it has ended or has not arrived yet. */
  cancel(run: string, job: string): boolean {
    const running = this.running.get(run);
    running?.stop.abort(jobDismissed(job));
    return running !== undefined;
  }

  /** Moves a result file from this node to the object store, as a file of a run. Returns its object name. Throws the TW_STORE_ errors. */
  async publish(run: Pick<TaskRequest, 'job' | 'run'>, name: string, signal: AbortSignal): Promise<string> {
    const { storage, objects } = this.options;
    const object = taskObjectName(run, name);
    const path = storage.results.path(run.job, name);
    await objects.put(object, { file: path }, { signal });
    await rm(path);
    return object;
  }

  /** True if this node is working on a task of the job, or is about to. */
  isWorkedOn(job: string): boolean {
    return [...this.running.values()].some((running) => running.job === job);
  }

  /** Delivers the values of all runs of a job to a run that waits for them. */
  deliverAllGather(run: string, values: unknown[]): void {
    this.allGather.deliver(run, values);
  }

  /** Ends all tasks because the node stops. */
  close(): void {
    for (const { stop } of this.running.values()) stop.abort(jobInterrupted('of another node'));
  }

  /**
   * Does a task. Throws TW_JOB_INPUTS, TW_DHT_BEHIND, TW_DHT_NOT_HELD if this node does not hold all of the slots from the start to the
   * end, and errors of the process.
   */
  async run(
    request: TaskRequest,
    send: (line: TaskEvent) => void,
    stopped: AbortSignal,
  ): Promise<TaskResult> {
    const { run, job } = request;
    const stop = new AbortController();
    this.running.set(run, { job, stop });
    const signal = AbortSignal.any([stop.signal, stopped]);
    try {
      return await this.queue.run(() => this.runTask(request, send, signal), signal);
    } finally {
      this.running.delete(run);
    }
  }

  private async runTask(
    { job, run, process: id, inputs, slots: text, since }: TaskRequest,
    send: (line: TaskEvent) => void,
    signal: AbortSignal,
  ): Promise<TaskResult> {
    send({ begun: true });
    const { storage, cluster, processes } = this.options;
    const { replica, prefixLengths } = cluster;
    const process = processes.find((one) => one.id === id);
    if (!process?.merge)
      throw jobFailed(`this node does not know the process ${id}; run the same version on all nodes`);
    const fault = this.inputChecks.get(id)!(inputs);
    if (fault !== undefined) throw badTaskInputs(id, fault);
    await process.check?.(inputs);
    const slots = SlotSet.fromText(text);
    await replica.waitForCommit(since, CATCH_UP_TIMEOUT_MS, signal);
    const requireSlots = () => {
      for (const slot of slots) if (!replica.hasSlot(slot)) throw slotNotHeld(slot);
    };
    requireSlots();
    const startedAt = performance.now();
    // A leader of an earlier version refuses parts without `seconds`.
    const sent = (part: unknown) => ({
      seconds: (performance.now() - startedAt) / 1000,
      ...(part as object),
    });
    const files: TaskResult['files'] = {};
    const slotOfCell = cellSlotLookup(prefixLengths);
    let partial: (() => unknown) | undefined;
    let progress: TaskProgress = {};
    let progressTimer: NodeJS.Timeout | undefined;
    const sendProgress = () => {
      clearTimeout(progressTimer);
      progressTimer = undefined;
      send({ progress });
    };
    const context: JobContext = {
      id: job,
      signal,
      isMine: (cell) => slots.has(slotOfCell(cell)),
      allGather: <T>(value: T) => {
        const values = this.allGather.wait<T>(run, signal);
        send({ word: value });
        return values;
      },
      progress: ({ isReset: _, ...now }) => {
        progress = { ...progress, ...now };
        progressTimer ??= setTimeout(sendProgress, PROGRESS_INTERVAL_MS);
      },
      message: (message) => send({ message }),
      log: (level, text) => send({ log: { level, text } }),
      partial: (results) => {
        partial = results;
      },
      file: async (name) => {
        files[name] = await this.publish({ job, run }, name, signal);
      },
    };
    try {
      const part = await process.run(inputs, context);
      // The slots may have been dropped in the meantime.
      requireSlots();
      return { part: sent(part), files, applied: replica.applied };
    } catch (error) {
      if (jobDismissed.is(signal.reason) && partial) send({ partial: sent(partial()) });
      throw error;
    } finally {
      sendProgress();
      // If this node or the leader was interrupted, the job may resume from these files.
      if (!jobInterrupted.is(signal.reason))
        await storage.scratch
          .remove(job)
          .catch((error) => send({ message: `files of the job could not be removed: ${messageOf(error)}` }));
    }
  }
}

/** Creates the id of a run. */
export const newTaskId = newVersion;

/** The event that reports an error to the leader of the job. */
export function taskErrorEvent(error: unknown): { error: ErrorDocument } {
  const known = error instanceof TilewrightError ? error : jobFailed.because(error, messageOf(error));
  return { error: toErrorDocument(known) };
}
