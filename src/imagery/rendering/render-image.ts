/** The last steps of rendering: an optional algorithm, and the conversion of planes to colours. */
import { type Algorithm, applyAlgorithm, type MapPixelSize } from '../algorithms/index.js';
import { renderRgba, type Style } from '../colours/index.js';
import type { RasterImage } from './mosaic.js';

/** Plain data, for worker threads. */
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

/** Throws TW_IMAGERY_LOOK if no pixel remains after the algorithm. */
export function renderImage({ picture, algorithm, style, pixel, cut }: RenderTask): RenderedImage {
  const { width, height, planes } = algorithm ? applyAlgorithm(algorithm, picture, pixel, cut) : picture;
  return { width, height, pixels: renderRgba(planes, style) };
}
