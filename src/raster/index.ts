export type { CogImage } from './cog.js';
export { encodeCog } from './cog.js';
export * as rasterErrors from './errors.js';
export type { OverviewResampling } from './overviews.js';
export * from './pixels.js';
export * from './types.js';
