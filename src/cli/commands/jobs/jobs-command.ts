import { Command } from 'commander';
import type { JobDocument } from '../../../client/index.js';
import { withConnection } from '../../cli-connection.js';
import {
  addOptions,
  allowHostOption,
  createOption,
  remoteCredentialsOption,
  type TargetOptions,
  withResources,
  withTarget,
} from '../../options/index.js';
import { logToStderr, printJson, printTable } from '../../output/index.js';
import { followAndPrint, jobPrinter } from './follow-job.js';

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
        const show = jobPrinter(flags.format);
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
