/**
 * Commands that train, apply and show models, and the manifests of Kubernetes Jobs. `cli-main.ts` loads the file of each command.
 * Invariant: help does not load `training`. Imports files of a folder above, the folders `commands/derive`, `options` and `output` and the
 * parts `async`, `client`, `engines`, `html`, `hyperspectral` (types), `jobs` (types) and `training`.
 */
export {};
