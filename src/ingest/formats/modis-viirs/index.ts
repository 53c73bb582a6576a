/**
 * Gridded land products of MODIS (HDF4-EOS) and VIIRS (HDF-EOS5), identified by the short name in their metadata. May import
 * formats/shared and band-groups.
 */
export { modis } from './modis.js';
export { viirs } from './viirs.js';
