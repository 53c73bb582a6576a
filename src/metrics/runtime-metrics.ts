/** Metrics of the process: those of prom-client, with a delay of the event loop and a garbage collection that can be stopped. */
import {
  constants,
  type IntervalHistogram,
  monitorEventLoopDelay,
  type NodeGCPerformanceDetail,
  type PerformanceEntry,
  PerformanceObserver,
} from 'node:perf_hooks';
import { Gauge, Histogram, type Registry } from 'prom-client';
import heapSizeAndUsed from 'prom-client/lib/metrics/heapSizeAndUsed.js';
import heapSpacesSizeAndUsed from 'prom-client/lib/metrics/heapSpacesSizeAndUsed.js';
import osMemoryHeap from 'prom-client/lib/metrics/osMemoryHeap.js';
import processCpuTotal from 'prom-client/lib/metrics/processCpuTotal.js';
import processMaxFileDescriptors from 'prom-client/lib/metrics/processMaxFileDescriptors.js';
import processOpenFileDescriptors from 'prom-client/lib/metrics/processOpenFileDescriptors.js';
import processResources from 'prom-client/lib/metrics/processResources.js';
import processStartTime from 'prom-client/lib/metrics/processStartTime.js';
import nodeVersion from 'prom-client/lib/metrics/version.js';

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
 * Creates no metric before `start`, because most nodes without a server are open for a moment only. Invariant: a timer and an observer run
 * from `start` to `close` only. They do not keep the process alive.
 */
export class RuntimeMetrics {
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

  /** The delay since the last scrape. Its names are those of prom-client. */
  private registerLag(lag: IntervalHistogram): void {
    const gauge = (name: string, help: string, collect?: () => void) =>
      new Gauge({
        name: `nodejs_eventloop_lag_${name}seconds`,
        help: `${help} of the event loop since the last scrape.`,
        registers: [this.registry],
        ...(collect && { collect }),
      });
    const mean = gauge('mean_', 'Mean delay', () => {
      // The timer of the histogram is late by its own resolution even if the loop is idle.
      const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LAG_RESOLUTION_MS / 1e3);
      const isEmpty = lag.count === 0;
      mean.set(isEmpty ? 0 : seconds(lag.mean));
      p50.set(isEmpty ? 0 : seconds(lag.percentile(50)));
      p99.set(isEmpty ? 0 : seconds(lag.percentile(99)));
      max.set(isEmpty ? 0 : seconds(lag.max));
      lag.reset();
    });
    const p50 = gauge('p50_', 'Median delay');
    const p99 = gauge('p99_', 'Delay of the slowest 1 % of turns');
    const max = gauge('max_', 'Longest delay');
  }
}
