export { requireSafeBinding } from './access.js';
export { cannotListen } from './errors.js';
export { holdAddress } from './held-address.js';
export { buildServer } from './server.js';
