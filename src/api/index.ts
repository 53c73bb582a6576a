/**
 * The HTTP API. `buildServer` registers plugins, schemas and routes in this order; this folder also has the services that routes use, and
 * the errors. Invariant: a server that other machines can reach requires a token. Imports the parts `async`, `dht`, `expressions`, `grid`,
 * `html`, `hyperspectral`, `imagery`, `ingest`, `jobs`, `metrics`, `query`, `raster` (types), `remote`, `storage`,
 * `subscriptions` and `training`.
 */

export { reservePort } from './api-port-reservation.js';
export { cannotListen } from './errors.js';
export { type ProxyOptions, readProxyOptions } from './http/proxy-options.js';
export { requireSafeBinding } from './plugins/auth-plugin.js';
export type { ClusterNode, ClusterUsage } from './routes/cluster/index.js';
export type { StatusInfo } from './routes/processes/index.js';
export type { ListedScene } from './routes/scenes/index.js';
export type { SubscriptionDocument } from './routes/subscriptions/index.js';
export { buildServer, type ServerOptions } from './server.js';
