/**
 * From request parameters to an image: mosaic of the least cloudy tiles, render style, algorithm, encoding. Invariant: defaults of render
 * parameters come from one reference tile, so that neighbouring map tiles match. Imports the folders `algorithms`, `colours`, `reading` and
 * `resampling` and the parts `async` (types), `expressions`, `grid`, `query` and `storage` (types).
 */

export { mosaic, type RenderContext, renderTilePlanes } from './mosaic.js';
export { tilesByCloudCover } from './mosaic-order.js';
export { MAX_MEDIAN_TILES, PIXEL_SELECTIONS, type PixelSelection } from './mosaic-pixel-selection.js';
export { RENDER_HANDLERS, type RenderedImage, type RenderTask, renderImage } from './render-image.js';
export { RenderQueue } from './render-queue.js';
export { mapView, smallestZoom } from './rendered-map-extent.js';
export {
  type ColourScale,
  colourScaleOf,
  hasRenderedBands,
  type RenderParams,
  type RenderStyle,
  renderStyleBytes,
  resolveRenderStyle,
} from './rendering-params.js';
