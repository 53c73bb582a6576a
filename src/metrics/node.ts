/**
 * The metrics of a node: those that its parts count as they work, those of its process, and those that are read from its state
 * (`Snapshot`).
 */

import {
  constants,
  type IntervalHistogram,
  monitorEventLoopDelay,
  type NodeGCPerformanceDetail,
  type PerformanceEntry,
  PerformanceObserver,
} from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import heapSizeAndUsed from 'prom-client/lib/metrics/heapSizeAndUsed.js';
import heapSpacesSizeAndUsed from 'prom-client/lib/metrics/heapSpacesSizeAndUsed.js';
import osMemoryHeap from 'prom-client/lib/metrics/osMemoryHeap.js';
import processCpuTotal from 'prom-client/lib/metrics/processCpuTotal.js';
import processMaxFileDescriptors from 'prom-client/lib/metrics/processMaxFileDescriptors.js';
import processOpenFileDescriptors from 'prom-client/lib/metrics/processOpenFileDescriptors.js';
import processResources from 'prom-client/lib/metrics/processResources.js';
import processStartTime from 'prom-client/lib/metrics/processStartTime.js';
import nodeVersion from 'prom-client/lib/metrics/version.js';
import { TilewrightError } from '../errors.js';

const CALL_BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

interface OperationMetrics {
  seconds: Histogram.Internal<string>;
  errors: Counter.Internal;
}

/**
 * Duration and failures of calls to another process, the object store or etcd: `tilewright_<callee>_request_duration_seconds{operation}`
 * and `tilewright_<callee>_errors_total{operation}`.
 */
export class CallMetrics<Operation extends string> {
  private readonly byOperation: ReadonlyMap<Operation, OperationMetrics>;

  constructor(registry: Registry, callee: string, description: string, operations: readonly Operation[]) {
    const shared = { labelNames: ['operation'], registers: [registry] };
    const seconds = new Histogram({
      ...shared,
      name: `tilewright_${callee}_request_duration_seconds`,
      help: `Duration of calls to ${description}, with their retries, by operation.`,
      buckets: CALL_BOUNDS_SECONDS,
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

/**
 * The modules behind `collectDefaultMetrics` of prom-client, except `eventLoopLag` and `gc`: these two start a timer and an observer that
 * nothing can stop, and `gc` counts one collection of each batch only.
 */
const DEFAULT_METRICS = [
  processCpuTotal,
  processStartTime,
  osMemoryHeap,
  processOpenFileDescriptors,
  processMaxFileDescriptors,
  processResources,
  heapSizeAndUsed,
  heapSpacesSizeAndUsed,
  nodeVersion,
];

/** Resolution of the timer that measures the delay of the event loop, ms. */
const LAG_RESOLUTION_MS = 20;
const GC_BOUNDS_SECONDS = [0.001, 0.01, 0.1, 1, 5];
const GC_KINDS = new Map<number | undefined, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
]);

/** The types of Node lack the member `detail`. */
type GcEntry = PerformanceEntry & { detail?: NodeGCPerformanceDetail };

/**
 * Metrics of the process: those of prom-client, with a delay of the event loop and a garbage collection that can be stopped. Creates no
 * metric before `start`, because most nodes without a server are open for a moment only. Invariant: a timer and an observer run from
 * `start` to `close` only. They do not keep the process alive.
 */
class RuntimeMetrics {
  private lag: IntervalHistogram | undefined;
  private gcObserver: PerformanceObserver | undefined;

  constructor(private readonly registry: Registry) {}

  start(): void {
    if (this.lag) return;
    for (const collect of DEFAULT_METRICS) collect(this.registry);
    const gcSeconds = new Histogram({
      name: 'nodejs_gc_duration_seconds',
      help: 'Duration of garbage collections, by kind.',
      labelNames: ['kind'],
      buckets: GC_BOUNDS_SECONDS,
      registers: [this.registry],
    });
    this.lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
    this.lag.enable();
    this.registerLag(this.lag);
    this.gcObserver = new PerformanceObserver((list) => {
      for (const { detail, duration } of list.getEntries() as GcEntry[]) {
        const kind = GC_KINDS.get(detail?.kind) ?? 'other';
        gcSeconds.observe({ kind }, duration / 1e3);
      }
    });
    this.gcObserver.observe({ entryTypes: ['gc'] });
  }

  close(): void {
    this.lag?.disable();
    this.gcObserver?.disconnect();
  }

  private registerLag(lag: IntervalHistogram): void {
    const delay: Gauge<'quantile'> = new Gauge({
      name: 'tilewright_event_loop_delay_seconds',
      help: 'Delay of the event loop since the last scrape, by quantile of its turns; 1 is the longest.',
      labelNames: ['quantile'],
      registers: [this.registry],
      collect: () => {
        for (const quantile of [0.5, 0.99, 1]) {
          const nanoseconds = lag.count === 0 ? 0 : lag.percentile(100 * quantile);
          // The timer of the histogram is late by its own resolution even if the loop is idle.
          delay.set({ quantile }, Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1e3));
        }
        lag.reset();
      },
    });
  }
}

const REQUEST_BOUNDS_SECONDS = [0.005, 0.025, 0.1, 0.25, 1, 5, 30];
const COMMIT_BOUNDS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const SCENE_OUTCOMES = ['new', 'replaced', 'unchanged'] as const;
const JOB_ENDS = ['successful', 'failed', 'dismissed'] as const;
const STORE_OPERATIONS = ['put', 'get', 'stream', 'copy', 'head', 'list', 'delete'] as const;
const ETCD_OPERATIONS = ['transact', 'read', 'grant_lease', 'keep_alive', 'revoke_lease'] as const;

export interface IngestMetrics {
  scenes: Counter<'outcome'>;
  failures: Counter;
  pixels: Counter;
}

export interface ClusterMetrics {
  /** From the records of a commit to its acknowledgement. */
  commitSeconds: Histogram;
  rebalanceBytes: Counter;
  rebalanceSlots: Counter;
  store: CallMetrics<(typeof STORE_OPERATIONS)[number]>;
  /** Absent if the node coordinates itself by its own folder. */
  etcd: CallMetrics<(typeof ETCD_OPERATIONS)[number]> | undefined;
}

export class NodeMetrics {
  private readonly registry = new Registry();
  private readonly runtime = new RuntimeMetrics(this.registry);
  readonly requestSeconds = new Histogram({
    name: 'tilewright_http_request_duration_seconds',
    help: 'Duration of HTTP requests until the end of the answer, by method, pattern of the route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_BOUNDS_SECONDS,
    registers: [this.registry],
  });
  readonly ingest: IngestMetrics = {
    scenes: this.counter('ingest_scenes_total', 'Scenes that were ingested, by outcome.', ['outcome']),
    failures: this.counter('ingest_failures_total', 'Inputs and scenes that could not be ingested.'),
    pixels: this.counter(
      'ingest_pixels_total',
      'Source pixels of new and replaced scenes, counted once for each band.',
    ),
  };
  readonly epochs: Counter = this.counter(
    'training_epochs_total',
    'Epochs of trainings that this node took part in.',
  );
  readonly jobsEnded: Counter<'process' | 'state'> = this.counter(
    'jobs_ended_total',
    'Jobs led by this node that have ended, by process and final state.',
    ['process', 'state'],
  );
  readonly subscriptionRounds: Counter<'state'> = this.counter(
    'subscription_rounds_total',
    'Rounds of subscriptions whose end this node has recorded, by final state of the job.',
    ['state'],
  );

  constructor() {
    for (const outcome of SCENE_OUTCOMES) this.ingest.scenes.inc({ outcome }, 0);
    for (const state of JOB_ENDS) this.subscriptionRounds.inc({ state }, 0);
  }

  /** The metrics of a node with an object store. Called once. */
  cluster({ hasEtcd }: { hasEtcd: boolean }): ClusterMetrics {
    const { registry } = this;
    return {
      commitSeconds: new Histogram({
        name: 'tilewright_commit_seconds',
        help: 'Commits of this node, from the records to the acknowledgement.',
        buckets: COMMIT_BOUNDS_SECONDS,
        registers: [registry],
      }),
      rebalanceBytes: this.counter(
        'rebalance_bytes_total',
        'Bytes of the tiles in slots that this node has loaded from the object store.',
      ),
      rebalanceSlots: this.counter(
        'rebalance_slots_total',
        'Slots that this node has loaded from the object store.',
      ),
      store: new CallMetrics(registry, 'store', 'the object store', STORE_OPERATIONS),
      etcd: hasEtcd ? new CallMetrics(registry, 'etcd', 'etcd', ETCD_OPERATIONS) : undefined,
    };
  }

  /** Series of these processes exist from the start, so that `increase` sees the first job. */
  expectProcesses(ids: Iterable<string>): void {
    for (const process of ids) for (const state of JOB_ENDS) this.jobsEnded.inc({ process, state }, 0);
  }

  /** Starts to measure the event loop and the garbage collection. */
  start(): void {
    this.runtime.start();
  }

  close(): void {
    this.runtime.close();
  }

  /** In the text format of Prometheus. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  private counter<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
  ): Counter<Label> {
    return new Counter({ name: `tilewright_${name}`, help, labelNames, registers: [this.registry] });
  }
}

type Labels = Record<string, string>;
/** A number, or a value for each set of labels. Without any set, the metric is left out: it would have a value 0 without labels. */
type Value = number | { labels: Labels; value: number }[];

/**
 * Metrics whose values are read from the state of a node at the moment of a request. Names begin with `tilewright_`, which is added here.
 */
export class Snapshot {
  private readonly registry = new Registry();

  gauge(name: string, help: string, value: Value): void {
    if (samplesOf(value).length === 0) return;
    const gauge = new Gauge(this.configuration(name, help, value));
    for (const sample of samplesOf(value)) gauge.set(sample.labels, sample.value);
  }

  counter(name: string, help: string, value: Value): void {
    if (samplesOf(value).length === 0) return;
    const counter = new Counter(this.configuration(name, help, value));
    for (const sample of samplesOf(value)) counter.inc(sample.labels, sample.value);
  }

  /** In the text format of Prometheus. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  private configuration(name: string, help: string, value: Value) {
    const labelNames = Object.keys(samplesOf(value)[0]?.labels ?? {});
    return { name: `tilewright_${name}`, help, labelNames, registers: [this.registry] };
  }
}

const samplesOf = (value: Value) => (typeof value === 'number' ? [{ labels: {}, value }] : value);
