/**
 * Jobs that all nodes know, share and take over: the leader divides a job into tasks, one for each owner of slots. Invariant: a job has one
 * leader, the node named by its entry, and only that node changes the entry. Imports files of the folder above and the parts `async`,
 * `coordination`, `dht` and `storage`.
 */
export { ClusterJobService } from './cluster-job-service.js';
export {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  TASK_PATH,
  type TaskEvent,
  TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from './cluster-job-task-executor.js';
