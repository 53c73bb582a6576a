/** The last steps of a picture: an algorithm makes other planes of it, and these become colours. */
import { type Algorithm, applyAlgorithm, type MapPixelSize } from '../algorithms/index.js';
import { renderRgba, type Style } from '../colours/index.js';
import type { RasterImage } from './mosaic.js';

/** Plain data: it can be sent to a worker thread. */
export interface RenderTask {
  picture: RasterImage;
  algorithm: Algorithm | undefined;
  style: Style;
  pixel: MapPixelSize;
  /** Pixels that the algorithm cuts off each side. */
  cut: number;
}

export interface RenderedImage {
  width: number;
  height: number;
  /** Red, green, blue and opacity. */
  pixels: Uint8Array;
}

/** Throws TW_IMAGERY_LOOK if the algorithm leaves nothing of the picture. */
export function renderImage({ picture, algorithm, style, pixel, cut }: RenderTask): RenderedImage {
  const { width, height, planes } = algorithm ? applyAlgorithm(algorithm, picture, pixel, cut) : picture;
  return { width, height, pixels: renderRgba(planes, style) };
}
