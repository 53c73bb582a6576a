/** Worker threads that select a function by the `kind` of a task, so that the type of a result follows from its task. */
import type { Transferable } from 'node:worker_threads';
import { handleTasks, type RunOptions, WorkerPool } from './worker-pool.js';

/** The functions of a thread, by the `kind` of the tasks that they handle. */
export type TaskHandlers = Record<string, (task: never) => unknown>;

type TaskOf<Handlers extends TaskHandlers, Kind extends keyof Handlers> = Parameters<Handlers[Kind]>[0] & {
  kind: Kind;
};
type ResultOf<Handlers extends TaskHandlers, Kind extends keyof Handlers> = Awaited<
  ReturnType<Handlers[Kind]>
>;

/** A `WorkerPool` whose module calls `handleTasksByKind` with functions of the type `Handlers`. */
export class TaskPool<Handlers extends TaskHandlers> extends WorkerPool<unknown, unknown> {
  override run<Kind extends keyof Handlers>(
    task: TaskOf<Handlers, Kind>,
    options?: RunOptions,
  ): Promise<ResultOf<Handlers, Kind>> {
    return super.run(task, options) as Promise<ResultOf<Handlers, Kind>>;
  }
}

/** The side of the thread. `transfer` lists the objects of a result that move to the caller instead of being copied. */
export function handleTasksByKind<Handlers extends TaskHandlers>(
  handlers: Handlers,
  transfer: (result: ResultOf<Handlers, keyof Handlers>) => readonly Transferable[],
): void {
  handleTasks<{ kind: keyof Handlers }, ResultOf<Handlers, keyof Handlers>>(
    (task) => handlers[task.kind](task as never) as ResultOf<Handlers, keyof Handlers>,
    transfer,
  );
}
