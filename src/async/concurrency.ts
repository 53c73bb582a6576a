/** Concurrency: limits and order of work that runs at the same time, what ends it early, work at intervals, and waits between tries. */

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

interface Waiting {
  permits: number;
  proceed(): void;
}

/**
 * Limits how much work runs at the same time; the rest waits in the order of its calls. A permit stands for one piece of work, or for one
 * byte of memory that work takes. Invariant: the first work that waits needs more permits than are free.
 */
export class Semaphore {
  private taken = 0;
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly permits: number) {}

  /** Runs `work` with a permit. Rejects with the signal's reason if it aborts before that. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /**
   * Waits for permits and returns the function that releases them, which must be called exactly once. Work that needs more permits than
   * exist runs alone.
   */
  async acquire(signal?: AbortSignal, permits = 1): Promise<() => void> {
    signal?.throwIfAborted();
    const needed = Math.max(1, Math.min(permits, this.permits));
    await new Promise<void>((resolve, reject) => {
      const work: Waiting = {
        permits: needed,
        proceed: () => {
          signal?.removeEventListener('abort', abandon);
          resolve();
        },
      };
      const abandon = () => {
        this.waiting.delete(work);
        reject(signal?.reason);
        this.passPermits();
      };
      signal?.addEventListener('abort', abandon, { once: true });
      this.waiting.add(work);
      this.passPermits();
    });
    return () => {
      this.taken -= needed;
      this.passPermits();
    };
  }

  /** Passes the free permits to the work that has waited longest. */
  private passPermits(): void {
    for (const work of this.waiting) {
      if (this.taken + work.permits > this.permits) return;
      this.taken += work.permits;
      this.waiting.delete(work);
      work.proceed();
    }
  }
}

/** Runs work one after another, in the order of the calls. */
export class SerialQueue {
  private last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as `work` does. An error does not stop later work. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.last.then(work);
    // The caller handles the error of `result`.
    this.last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all work that was queued before this call has ended. */
  async idle(): Promise<void> {
    await this.last;
  }
}

/**
 * Calls `work` on every item, at most `concurrency` at a time, and returns the results in the order of the items. A stream is read no
 * further than items are worked on. After an error, no further item is started. The first error is thrown once all started work has ended,
 * so that the caller can clean up.
 */
export async function mapConcurrent<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const results: Result[] = [];
  const errors: unknown[] = [];
  let next = 0;
  const worker = async () => {
    while (errors.length === 0) {
      try {
        const step = source.next();
        const { done, value } = step instanceof Promise ? await step : step;
        if (done) return;
        const index = next++;
        results[index] = await work(value);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  if (errors.length === 0) return results;
  await source.return?.();
  throw errors[0];
}

/**
 * Runs all works at once. If one fails, aborts the signal of the others with its error, waits until they have ended, and throws the error.
 * The works also end if `outer` is aborted.
 */
export async function runAllOrAbort(
  works: readonly ((signal: AbortSignal) => Promise<void>)[],
  outer?: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const signal = outer ? AbortSignal.any([outer, stop.signal]) : stop.signal;
  // Each work may have many listeners.
  setMaxListeners(0, signal, stop.signal);
  await Promise.all(
    works.map((work) =>
      work(signal).catch((error) => {
        if (!stop.signal.aborted) stop.abort(error);
      }),
    ),
  );
  outer?.throwIfAborted();
  stop.signal.throwIfAborted();
}

/** Waits for `work`. Throws the reason of the signal as soon as it is aborted; `work` then continues unobserved. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** All items of an async iterable. (Node 20 lacks `Array.fromAsync`.) */
export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Runs `work` periodically in the background until it is closed. */
export class PeriodicTask {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** Waits `intervalMs` between runs, and `firstDelayMs` before the first. `onFailure` gets each error; later runs still take place. */
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly intervalMs: number,
    private readonly onFailure: (error: unknown) => void,
    firstDelayMs = intervalMs,
  ) {
    this.schedule(firstDelayMs);
  }

  /** Cancels later runs and waits for the current one. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private schedule(delayMs = this.intervalMs): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.running = this.runOnce();
    }, delayMs).unref();
  }

  private async runOnce(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.onFailure(error);
    }
    this.schedule();
  }
}

/** Waits a random time. Its maximum is 20 ms for the first try, doubles with every try, and ends at `longest` ms. */
export async function backOff(tries: number, longest = 320): Promise<void> {
  await sleep(Math.random() * Math.min(20 * 2 ** tries, longest));
}

/** Time for which work in steps runs in one turn of the event loop, ms. */
const TURN_MS = 4;

/** Work of this thread that waits for its turn, in the order of its calls. */
const waitingForTurn: (() => void)[] = [];
/** The time at which the work of the current turn began; undefined if none has begun. */
let turnBegan: number | undefined;
let isTurnComing = false;

function beginTurnLater(): void {
  if (isTurnComing) return;
  isTurnComing = true;
  setImmediate(() => {
    isTurnComing = false;
    turnBegan = undefined;
    waitingForTurn.shift()?.();
    if (waitingForTurn.length > 0) beginTurnLater();
  });
}

/**
 * Runs work, which yields after steps of less than a few milliseconds, so that other events wait little for it: all such work together has
 * `TURN_MS` of each turn of the event loop. The first step runs before this function returns. Calls `pause` before it waits for the first
 * time. Rejects with the signal's reason if it aborts before the end.
 */
export async function runInTurns<T>(
  work: Generator<void, T>,
  { pause, signal }: { pause?: () => void; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  for (let turns = 0; ; turns++) {
    turnBegan ??= performance.now();
    const end = turnBegan + TURN_MS;
    // Work that begins before the next turn has the rest of this one.
    beginTurnLater();
    let isWaiting = false;
    try {
      signal?.throwIfAborted();
      do {
        const step = work.next();
        if (step.done) return step.value;
      } while (performance.now() < end);
      if (turns === 0) pause?.();
      isWaiting = true;
    } finally {
      // The rest of the turn is for work that waits.
      if (!isWaiting && performance.now() < end) waitingForTurn.shift()?.();
    }
    await new Promise<void>((resolve) => waitingForTurn.push(resolve));
  }
}

/** Runs work in steps at once, however long it takes, and returns its result. */
export function runAtOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
