export * from './broken.js';
export { KINDS, type LandCover } from './kinds.js';
export * from './landsat-like.js';
export type { MtlForm } from './landsat-metadata.js';
export * from './landsat-product.js';
export type { Landscape } from './landscape.js';
export { qaPixel } from './qa-pixel.js';
export * from './sentinel-like.js';
export * from './sentinel-safe.js';
