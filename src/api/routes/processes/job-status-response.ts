/** The status document of a job: OGC statusInfo with counts of tiles. */
import { hasResults } from '../../../jobs/index.js';
import { isoTime } from '../../../query/index.js';
import type { JobRecord } from '../../../storage/index.js';
import { link } from '../../http/index.js';

const RESULTS = 'http://www.opengis.net/def/rel/ogc/1.0/results';

export const formatOptionalTime = (time: number | undefined) =>
  time === undefined ? undefined : isoTime(time);

export type StatusInfo = ReturnType<typeof statusInfo>;

export function statusInfo(job: JobRecord, base: string) {
  const share = job.share ?? doneFraction(job.tiles);
  return {
    jobID: job.id,
    processID: job.process,
    type: 'process',
    status: job.status,
    message: job.message,
    created: isoTime(job.created),
    started: formatOptionalTime(job.started),
    finished: formatOptionalTime(job.finished),
    updated: isoTime(job.updated),
    // A running job may find more work, so it never reports 100 %.
    progress: job.status === 'successful' ? 100 : Math.min(99, Math.floor(share * 100)),
    tiles: job.tiles,
    ...(job.status === 'running' && estimateEnd(job, share)),
    ...(job.error && { error: job.error }),
    ...(job.retryOf && { retryOf: job.retryOf }),
    ...(job.retriedBy && { retriedBy: job.retriedBy }),
    links: linksOf(job, base),
  };
}

function linksOf(job: JobRecord, base: string) {
  const self = `${base}/jobs/${job.id}`;
  const related = (href: string, title: string) => ({ ...link('related', href), title });
  return [
    link('self', self),
    link('monitor', `${self}/events`, 'text/event-stream'),
    related(`${self}/logs`, 'log'),
    ...(hasResults(job) ? [link(RESULTS, `${self}/results`)] : []),
    ...(job.retryOf ? [related(`${base}/jobs/${job.retryOf}`, 'the job that this one retries')] : []),
    ...(job.retriedBy ? [related(`${base}/jobs/${job.retriedBy}`, 'the job that retries this one')] : []),
  ];
}

/** Fraction of the work that is done, 0 to 1. Skipped tiles do not count, because they take almost no time. */
function doneFraction({ total, done, failed, skipped }: JobRecord['tiles']): number {
  const work = total - skipped;
  if (work > 0) return (done + failed) / work;
  return total > 0 ? 1 : 0;
}

/** Rate and remaining time of a running job, from the start of its current run to its last update. */
function estimateEnd({ started = 0, resumed = started, updated, tiles }: JobRecord, share: number) {
  const seconds = (updated - resumed) / 1000;
  if (seconds <= 0 || share === 0) return {};
  return {
    tilesPerSecond: Number(((tiles.done + tiles.failed) / seconds).toPrecision(3)),
    secondsLeft: Math.ceil((seconds * (1 - share)) / share),
  };
}
