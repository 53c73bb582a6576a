/** The status document of a job: OGC statusInfo, with tiles counted and links. */
import type { JobRecord } from '../../../storage/index.js';

const RESULTS = 'http://www.opengis.net/def/rel/ogc/1.0/results';

export const formatOptionalTime = (time: number | undefined) =>
  time === undefined ? undefined : new Date(time).toISOString();

export function statusInfo(job: JobRecord, base: string) {
  const share = job.share ?? doneOf(job.tiles);
  return {
    jobID: job.id,
    processID: job.process,
    type: 'process',
    status: job.status,
    message: job.message,
    created: formatOptionalTime(job.created),
    started: formatOptionalTime(job.started),
    finished: formatOptionalTime(job.finished),
    updated: formatOptionalTime(job.updated),
    // What is all done so far may not be all there is.
    progress: job.status === 'successful' ? 100 : Math.min(99, Math.floor(share * 100)),
    tiles: job.tiles,
    ...(job.status === 'running' && estimateEnd(job, share)),
    ...(job.error && { error: job.error }),
    ...(job.retryOf && { retryOf: job.retryOf }),
    ...(job.retriedBy && { retriedBy: job.retriedBy }),
    links: linksOf(job, base),
  };
}

/** Whether the job's results can be read: also those that a cancelled job had made before. */
export function hasResults({ status, results }: JobRecord): boolean {
  return status === 'successful' || (status === 'dismissed' && results !== undefined);
}

function linksOf(job: JobRecord, base: string) {
  const self = `${base}/jobs/${job.id}`;
  const json = (rel: string, href: string, title?: string) => ({
    rel,
    type: 'application/json',
    href,
    ...(title && { title }),
  });
  return [
    json('self', self),
    { rel: 'monitor', type: 'text/event-stream', href: `${self}/events` },
    json('related', `${self}/logs`, 'log'),
    ...(hasResults(job) ? [json(RESULTS, `${self}/results`)] : []),
    ...(job.retryOf ? [json('related', `${base}/jobs/${job.retryOf}`, 'the job that this one retries')] : []),
    ...(job.retriedBy
      ? [json('related', `${base}/jobs/${job.retriedBy}`, 'the job that retries this one')]
      : []),
  ];
}

/** The share that is done, 0 to 1, of what is to be done at all: what is skipped takes next to no time. */
function doneOf({ total, done, failed, skipped }: JobRecord['tiles']): number {
  const work = total - skipped;
  if (work > 0) return (done + failed) / work;
  return total > 0 ? 1 : 0;
}

/** How fast a running job gets on, from the start of its current run to its last sign of life. */
function estimateEnd({ started = 0, resumed = started, updated, tiles }: JobRecord, share: number) {
  const seconds = (updated - resumed) / 1000;
  if (seconds <= 0 || share === 0) return {};
  return {
    tilesPerSecond: Number(((tiles.done + tiles.failed) / seconds).toPrecision(3)),
    secondsLeft: Math.ceil((seconds * (1 - share)) / share),
  };
}
