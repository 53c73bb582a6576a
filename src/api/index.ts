export { requireSafeBinding } from './access.js';
export { cannotListen } from './errors.js';
export { holdAddress } from './held-address.js';
export { type ProxyOptions, readProxyOptions } from './proxy.js';
export { buildServer, type ServerOptions } from './server.js';
