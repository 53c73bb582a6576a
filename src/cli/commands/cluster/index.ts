/**
 * `tilewright node`: list, locate, join, drain, rebalance and restore. `cli-main.ts` loads the file of the command. Imports files of a
 * folder above, the folders `options` and `output` and the parts `coordination`, `dht`, `grid` and `storage`.
 */
export {};
