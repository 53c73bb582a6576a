/** The last steps of a picture: an algorithm makes other planes of it, and these become colours. */
import { type Algorithm, applyAlgorithm, type PixelSize } from '../algorithms/index.js';
import { paint, type Style } from '../colours/index.js';
import type { Picture } from './mosaic.js';

/** Plain data: it can be sent to a worker thread. */
export interface RenderOrder {
  picture: Picture;
  algorithm: Algorithm | undefined;
  style: Style;
  pixel: PixelSize;
  /** Pixels that the algorithm cuts off each side. */
  cut: number;
}

export interface Rendered {
  width: number;
  height: number;
  /** Red, green, blue and opacity. */
  pixels: Uint8Array;
}

/** Throws TW_IMAGERY_LOOK if the algorithm leaves nothing of the picture. */
export function render({ picture, algorithm, style, pixel, cut }: RenderOrder): Rendered {
  const { width, height, planes } = algorithm ? applyAlgorithm(algorithm, picture, pixel, cut) : picture;
  return { width, height, pixels: paint(planes, style) };
}
