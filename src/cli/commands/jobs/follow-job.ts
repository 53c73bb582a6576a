/** Follows a job, and prints it. */
import type { Client, JobDocument } from '../../../client/index.js';
import { formatDuration } from '../../../html/index.js';
import { plural } from '../../../utils/plural.js';
import { interruptSignal } from '../../cli-signals.js';
import { logToStderr, print, printJson, withProgressLine } from '../../output/index.js';

/** Prints a job in the format of the command. */
export const jobPrinter = (format: string) => (format === 'json' ? printJson : printJob);

/** Follows a job until it ends, and prints it. Sets the exit code 1 unless it was successful. */
export async function followAndPrint(client: Client, id: string, format: string): Promise<void> {
  const job = await followJob(client, id);
  if (job) jobPrinter(format)(job);
  if (job?.status !== 'successful') process.exitCode = 1;
}

/** The unit that the progress of a process counts, if it is not tiles. */
const UNIT_OF_PROCESS: Record<string, string> = {
  train: 'place',
  tensor: 'cell',
  texture: 'place',
  'store-model': 'model',
};

const unitOf = (process: string) => UNIT_OF_PROCESS[process] ?? 'tile';

/** Prints the log and the progress of a job until it ends. Returns the ended job; undefined after Ctrl-C. */
async function followJob(client: Client, id: string): Promise<JobDocument | undefined> {
  const { processID } = await client.job(id);
  const signal = interruptSignal();
  try {
    await withProgressLine(`${unitOf(processID)}s`, async (line) => {
      for await (const { event, data } of client.jobEvents(id, signal)) {
        if (event === 'progress') line.update(data);
        else {
          line.end();
          const [level, text] = event === 'log' ? [data.level, data.text] : ['state', data.status];
          logToStderr(`${data.time} ${level.padEnd(7)} ${text}`);
        }
      }
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    logToStderr(`no longer following; "tilewright jobs ${id}" shows its progress`);
    return undefined;
  }
  return client.job(id);
}

function printJob(job: JobDocument): void {
  const { jobID, processID, status, message, started, finished, updated, tiles, error } = job;
  const seconds = started ? (Date.parse(finished ?? updated) - Date.parse(started)) / 1000 : 0;
  print(`job ${jobID}: ${processID}, ${status}${message ? `, ${message}` : ''}`);
  if (started)
    print(
      `${tiles.done} of ${plural(tiles.total, unitOf(processID))} done, ${tiles.failed} failed, ${tiles.skipped} skipped, ${formatDuration(seconds)}`,
    );
  if (error) print(`${error.message} [${error.code}]`);
  if (job.retryOf) print(`it repeats the failed part of job ${job.retryOf}`);
  if (job.retriedBy) print(`job ${job.retriedBy} repeats its failed part`);
}
