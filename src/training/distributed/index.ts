/**
 * Trains one model on several nodes (synchronous data parallelism): ranks, rendezvous, ring all-reduce, rank checkpoints. Invariant: all
 * ranks have the same weights, bit for bit, after every step. Imports files of a folder above, the folders `data`, `evaluation`,
 * `inference`, `learners`, `models`, `patches`, `registry` (types) and `train-cell` and the parts `dht` and `engines`.
 */
export { distributedReport, pooledCellScores } from './build-distributed-report.js';
export { describeResumePoint } from './rank-checkpoints.js';
export type { DataParallelResult, ReadCellsRequest } from './rank-messages.js';
export { RankProcess } from './rank-process.js';
export { type PendingConnection, Rendezvous } from './rank-rendezvous.js';
