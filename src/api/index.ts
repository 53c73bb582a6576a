/**
 * The HTTP API. `buildServer` registers plugins, schemas and routes in this order; this folder also has the services that routes use, and
 * the errors. Invariants: a plugin depends on the config of a route, never on a single route; a route validates its input by a schema, and
 * leaves everything that is not HTTP to the services of the node; a server that other machines can reach requires a token. Imports the
 * parts `async`, `dht`, `expressions`, `grid`, `html`, `hyperspectral`, `imagery`, `ingest`, `jobs`, `metrics`, `query`, `raster` (types),
 * `remote`, `storage`, `subscriptions` and `training`.
 */

export { cannotListen } from './errors.js';
export { requireSafeBinding } from './plugins/auth.js';
export type { ClusterNode } from './routes/cluster.js';
export type { ClusterUsage } from './routes/cluster-messages.js';
export type { StatusInfo } from './routes/execution.js';
export type { ListedScene } from './routes/scenes.js';
export type { SubscriptionDocument } from './routes/subscriptions.js';
export {
  buildServer,
  type ProxyOptions,
  readProxyOptions,
  reservePort,
  type ServerOptions,
} from './server.js';
