/** Filters of the list of jobs, with the parameters of OGC API Processes. */
import { datetimeSchema, parseDatetime } from '../../../query/index.js';
import type { JobRecord } from '../../../storage/index.js';
import { JOB_STATES, listOf } from '../../schemas/index.js';

export interface JobQuery {
  type?: string[];
  processID?: string[];
  status?: string[];
  /** Interval that contains the time of creation. */
  datetime?: string;
  /** Run time of the job so far or in total, seconds. */
  minDuration?: number;
  maxDuration?: number;
  limit?: number;
  /** The list begins after the job of this id. */
  token?: string;
}

const seconds = { type: 'number', minimum: 0 };

export const jobQuery = {
  type: listOf({ enum: ['process'] }),
  processID: listOf({ type: 'string' }),
  status: listOf({ enum: JOB_STATES }),
  datetime: datetimeSchema(),
  minDuration: seconds,
  maxDuration: seconds,
  limit: { type: 'integer', minimum: 1 },
  token: { type: 'string', maxLength: 40 },
};

/** Splits values such as "running,accepted" into the lists that the schema requires. */
export function splitListParams(query: JobQuery): void {
  for (const name of ['type', 'processID', 'status'] as const) {
    const given: unknown = query[name];
    if (typeof given === 'string') query[name] = given.split(',');
  }
}

/** Throws TW_QUERY_DATETIME. */
export function jobFilter(query: JobQuery): (job: JobRecord) => boolean {
  const { processID, status, datetime, minDuration = 0, maxDuration = Infinity } = query;
  const { start = -Infinity, end = Infinity } = datetime === undefined ? {} : parseDatetime(datetime);
  const anyDuration = query.minDuration === undefined && query.maxDuration === undefined;
  const runsFor = ({ started, finished = Date.now() }: JobRecord) => {
    if (started === undefined) return false;
    const ran = (finished - started) / 1000;
    return ran >= minDuration && ran <= maxDuration;
  };
  return (job) =>
    (!processID || processID.includes(job.process)) &&
    (!status || status.includes(job.status)) &&
    job.created >= start &&
    job.created <= end &&
    (anyDuration || runsFor(job));
}
