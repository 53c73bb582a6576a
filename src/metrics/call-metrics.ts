/** Duration and failures of calls to another process: the object store, etcd. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { TilewrightError } from '../errors.js';

const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

interface OperationMetrics {
  seconds: Histogram.Internal<string>;
  errors: Counter.Internal;
}

/** `tilewright_<callee>_request_duration_seconds{operation}` and `tilewright_<callee>_errors_total{operation}`. */
export class CallMetrics<Operation extends string> {
  private readonly byOperation: ReadonlyMap<Operation, OperationMetrics>;

  constructor(registry: Registry, callee: string, description: string, operations: readonly Operation[]) {
    const shared = { labelNames: ['operation'], registers: [registry] };
    const seconds = new Histogram({
      ...shared,
      name: `tilewright_${callee}_request_duration_seconds`,
      help: `Duration of calls to ${description}, with their retries, by operation.`,
      buckets: BOUNDS_SECONDS,
    });
    const errors = new Counter({
      ...shared,
      name: `tilewright_${callee}_errors_total`,
      help: `Calls to ${description} that failed after all retries, by operation.`,
    });
    this.byOperation = new Map(
      operations.map((operation) => [
        operation,
        { seconds: seconds.labels({ operation }), errors: errors.labels({ operation }) },
      ]),
    );
    // A series that starts with its first error hides that error from `increase`.
    for (const { errors } of this.byOperation.values()) errors.inc(0);
    for (const operation of operations) seconds.zero({ operation });
  }

  /** Runs a call and measures it. Calls that the caller aborted and answers such as "not found" are not failures. */
  async measure<T>(operation: Operation, call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { seconds, errors } = this.byOperation.get(operation)!;
    const begun = performance.now();
    try {
      return await call();
    } catch (error) {
      if (isFailure(error) && !signal?.aborted) errors.inc();
      throw error;
    } finally {
      seconds.observe((performance.now() - begun) / 1e3);
    }
  }

  /**
   * Returns an object that measures the methods of `callee` in `operations` and passes on the other members. The last argument of a call
   * may have a `signal`.
   */
  measured<Callee extends object>(
    callee: Callee,
    operations: { [Method in keyof Callee & string]?: Operation },
  ): Callee {
    const methods = callee as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const measured = Object.entries(operations as Record<string, Operation>).map(([name, operation]) => [
      name,
      (...args: { signal?: AbortSignal }[]) =>
        this.measure(operation, () => methods[name]!(...args), args.at(-1)?.signal),
    ]);
    return Object.assign(Object.create(callee), Object.fromEntries(measured));
  }
}

const isFailure = (error: unknown) => !(error instanceof TilewrightError) || error.status >= 500;
