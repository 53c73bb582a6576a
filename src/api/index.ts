export { requireSafeBinding } from './access.js';
export { buildServer, type ServerOptions } from './server.js';
export type { Services } from './services.js';
