export { requireSafeBinding } from './access.js';
export { buildServer } from './server.js';
