/**
 * Commands that train, apply and show models, and the manifests of Kubernetes Jobs. `main.ts` loads the file of each command. Invariant:
 * help does not load `training`. Imports `analysis`, `engines` and `training`.
 */
export {};
