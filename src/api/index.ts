export { requireSafeBinding } from './access.js';
export { cannotListen } from './errors.js';
export { buildServer } from './server.js';
