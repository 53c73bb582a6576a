/** Server-sent events (WHATWG HTML, 9.2) of a job. */
import { type EventOptions, type JobEvent, type JobService, jobEvents } from '../../../jobs/index.js';
import { formatOptionalTime, statusInfo } from './job-status-response.js';

/** How long clients wait before they reconnect. */
const RETRY_MS = 2000;

/** The text of an event stream, event by event. */
export async function* eventStream(
  jobs: JobService,
  id: string,
  options: EventOptions,
  base: string,
): AsyncGenerator<string> {
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const event of jobEvents(jobs, id, options)) yield textOf(id, event, base);
}

function textOf(jobID: string, event: JobEvent, base: string): string {
  switch (event.kind) {
    case 'idle':
      return ': still here\n\n';
    case 'progress':
      return message('progress', statusInfo(event.job, base));
    case 'log': {
      const { time, level, text } = event.line;
      return message('log', { time: formatOptionalTime(time), level, text }, event.seq);
    }
    case 'state': {
      const { status, time, job, seq } = event;
      const data = job ? statusInfo(job, base) : { jobID, type: 'process', status };
      return message('state', { time: formatOptionalTime(time), ...data }, seq);
    }
  }
}

/** JSON.stringify writes no line breaks, so one `data` line is enough. */
function message(event: string, data: unknown, id?: number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}
