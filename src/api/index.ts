export { cannotListen } from './errors.js';
export { requireSafeBinding } from './plugins/auth.js';
export { type ProxyOptions, readProxyOptions } from './proxy-options.js';
export { reservePort } from './reserve-port.js';
export { buildServer, type ServerOptions } from './server.js';
