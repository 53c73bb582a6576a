/**
 * `tilewright node`: list, locate, join, drain, rebalance and restore. `main.ts` loads the file of the command. Imports `dht`, `grid` and
 * `storage`.
 */
export {};
