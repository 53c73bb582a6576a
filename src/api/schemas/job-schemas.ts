/** Documents of OGC API Processes: processes, jobs, logs. */
import {
  count,
  links,
  listOf,
  mapOf,
  number,
  object,
  oneOf,
  percent,
  ref,
  text,
  time,
} from './schema-builders.js';

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
