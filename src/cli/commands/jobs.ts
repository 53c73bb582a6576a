/** `tilewright jobs`. Invariant: Ctrl-C stops the printing of a job, and not the job. */
import { Command } from 'commander';
import type { Client, JobDocument } from '../../client/index.js';
import { formatDuration } from '../../html/index.js';
import { plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import {
  addOptions,
  allowHostOption,
  createOption,
  remoteCredentialsOption,
  type TargetOptions,
  withResources,
  withTarget,
} from '../options.js';
import { logToStderr, print, printJson, printTable, withProgressLine } from '../output.js';
import { interruptSignal } from '../process.js';

/** Prints a job in the format of the command. */
const jobPrinter = (format: string) => (format === 'json' ? printJson : printJob);

/** Prints a job; as text with the warnings and errors of its log. */
async function showJob(client: Client, job: JobDocument, format: string): Promise<void> {
  jobPrinter(format)(job);
  if (format === 'json') return;
  for await (const { level, text } of client.jobLog(job.jobID))
    if (level !== 'info') print(`${level}: ${text}`);
}

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
  if (job.stale) print('the node cannot ask the cluster; this is the last state that it has seen');
  if (error) print(`${error.message} [${error.code}]`);
  if (job.retryOf) print(`it repeats the failed part of job ${job.retryOf}`);
  if (job.retriedBy) print(`job ${job.retriedBy} repeats its failed part`);
}

type JobsFlags = TargetOptions & {
  follow?: boolean;
  cancel?: boolean;
  retry?: boolean;
  allowHost?: string[];
  remoteCredentials?: string;
};

const WHEN = 'with --retry or --follow without a server: ';

export function jobsCommand(): Command {
  const command = addOptions(
    new Command('jobs')
      .description('list jobs, the newest first; or show, follow, cancel or retry a job')
      .argument('[id]', 'id of a job'),
    [
      createOption(
        '--follow',
        'print the log of the job until the job ends; Ctrl-C does not stop the job',
      ).conflicts(['cancel', 'retry']),
      createOption('--cancel', 'stop the job; its finished part is kept').conflicts('retry'),
      createOption('--retry', 'start a job that repeats the failed part, and follow it'),
      allowHostOption(WHEN),
      remoteCredentialsOption(WHEN),
    ],
  );
  return withTarget(withResources(command)).action(async (id: string | undefined, flags: JobsFlags) => {
    const { follow = false, cancel = false, retry = false } = flags;
    if (id === undefined && (follow || cancel || retry))
      command.error('error: --follow, --cancel and --retry need the id of a job');
    // If no server has the folder open, this process must run the job that it follows.
    const runsJobs = follow || retry;
    const { allowHost, remoteCredentials, ...others } = flags;
    return withConnection(
      // The environment and the config file can set flags of other commands, so a list does not warn about them.
      { ...others, ...(runsJobs && { allowHost, remoteCredentials }) },
      async (target) => {
        const { client } = target;
        const show = (job: JobDocument) => showJob(client, job, flags.format);
        if (id === undefined) {
          const jobs = await client.jobs();
          if (flags.format === 'json') printJson({ jobs });
          else printList(jobs);
          return;
        }
        if (cancel) return show(await client.cancelJob(id));
        if (!follow && !retry) return show(await client.job(id));
        const followed = retry ? (await client.retryJob(id)).jobID : id;
        if (retry) logToStderr(`job ${followed} repeats the failed part of ${id}`);
        await followAndPrint(client, followed, flags.format);
      },
      { resume: follow },
    );
  });
}

function printList(jobs: JobDocument[]): void {
  const rows = jobs.map((job) => [
    job.jobID,
    job.processID,
    job.status,
    `${job.progress} %`,
    job.created,
    job.error?.message ?? job.message,
  ]);
  printTable([['job', 'process', 'state', 'done', 'created', 'message'], ...rows]);
}
