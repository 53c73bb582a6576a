/** The metrics that the parts of a node count as they work. Others are read from the state of the node (`Snapshot`). */
import { Counter, Histogram, Registry } from 'prom-client';
import { CallMetrics } from './call-metrics.js';
import { RuntimeMetrics } from './runtime-metrics.js';

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
