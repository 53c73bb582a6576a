export { COLORMAPS } from './colormaps.js';
export { parseExpression } from './expression/parse.js';
export { Imagery, type ImageryOptions, type MapExtent, type MapRequest } from './imagery.js';
export type { LookParams } from './look.js';
export type { PictureFormat } from './paint.js';
export { parseRegion, type Region } from './region.js';
export type { Series, SeriesDate } from './series.js';
