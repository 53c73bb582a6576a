/**
 * Commands of jobs, and of subscriptions, whose rounds are jobs. Invariant: Ctrl-C stops the printing of a job, and not the job. Imports
 * files of a folder above, the folders `options` and `output` and the parts `client`, `html` and `ingest` (types).
 */
export { jobsCommand } from './jobs-command.js';
export { subscribeCommand } from './subscribe-command.js';
export { subscriptionsCommand } from './subscriptions-command.js';
