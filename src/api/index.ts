export { requireSafeBinding } from './plugins/auth.js';
export { cannotListen } from './errors.js';
export { holdAddress } from './reserve-port.js';
export { type ProxyOptions, readProxyOptions } from './proxy-options.js';
export { buildServer, type ServerOptions } from './server.js';
