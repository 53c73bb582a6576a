/**
 * National products of the USA: NAIP and NLCD. Invariant: a file is one of them only if both its name and its content agree.
 * May import formats/shared and band-groups.
 */
export { naip } from './naip.js';
export { nlcd } from './nlcd.js';
