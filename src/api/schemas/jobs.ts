/** Documents of OGC API Processes (processes, jobs, logs) and of subscriptions. */

import { listOf } from '../../utils/json-schema.js';
import { count, links, mapOf, number, object, oneOf, orNull, percent, ref, text, time } from './builders.js';

export const JOB_STATES = ['accepted', 'running', 'successful', 'failed', 'dismissed'];

const summary = {
  id: text,
  title: text,
  description: text,
  version: text,
  jobControlOptions: listOf(text),
  outputTransmission: listOf(text),
  ...links,
};

export const jobSchemas = {
  ProcessSummary: object(summary),
  Processes: object({ processes: listOf(ref('ProcessSummary')), ...links }),
  Process: object({
    ...summary,
    inputs: mapOf(object({ title: text, schema: { type: 'object' }, minOccurs: count })),
    outputs: mapOf(object({ title: text, schema: { type: 'object' } })),
  }),
  Job: object({
    jobID: text,
    processID: text,
    type: oneOf('process'),
    status: oneOf(...JOB_STATES),
    message: text,
    created: time,
    'started?': time,
    'finished?': time,
    updated: time,
    progress: percent,
    tiles: object({ total: count, done: count, failed: count, skipped: count }),
    'tilesPerSecond?': number,
    'secondsLeft?': number,
    /** True if the node could not ask the cluster: this is the last state that it has seen. */
    'stale?': { type: 'boolean' },
    'error?': object({ code: text, message: text }),
    'retryOf?': text,
    'retriedBy?': text,
    /** Partial results of a failed job. */
    'results?': { type: 'object' },
    ...links,
  }),
  Jobs: object({ jobs: listOf(ref('Job')), ...links }),
  Results: { type: 'object' },
  /** One event of a stream; `data` is JSON. */
  JobEvent: object({ 'event?': oneOf('state', 'log', 'progress'), 'id?': text, 'data?': text }),
  JobLog: object({
    lines: listOf(
      object({
        seq: count,
        time,
        level: oneOf('info', 'warning', 'error'),
        text,
        'status?': oneOf(...JOB_STATES),
      }),
    ),
    ...links,
  }),
};

export const subscriptionSchemas = {
  Subscription: object({
    id: text,
    state: oneOf('active', 'paused'),
    every: text,
    /** The inputs of the jobs. */
    inputs: { type: 'object' },
    created: time,
    /** Null while the subscription is paused. */
    nextRun: orNull(time),
    'lastSuccess?': time,
    'lastRound?': object({
      'job?': text,
      status: oneOf(...JOB_STATES),
      started: time,
      'finished?': time,
      'result?': object({ ingested: count, unchanged: count, failed: count, tiles: count }),
      'error?': object({ code: text, message: text }),
    }),
    ...links,
  }),
  Subscriptions: object({ subscriptions: listOf(ref('Subscription')), ...links }),
};
