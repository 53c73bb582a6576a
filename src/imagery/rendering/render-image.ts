/** The last steps of rendering: an optional algorithm, and the conversion of planes to colours. */
import { evaluateProgram, type Program } from '../../expressions/index.js';
import { type Algorithm, applyAlgorithm, type MapPixelSize, type Planes } from '../algorithms/index.js';
import { renderRgba, type Style } from '../colours/index.js';

/** Plain data, for worker threads. */
export interface RenderTask {
  picture: Planes;
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

export interface EvaluateTask {
  programs: Program[];
  bands: Float64Array[];
  length: number;
}

/** Tasks of worker threads. */
export const RENDER_HANDLERS = {
  evaluate: ({ programs, bands, length }: EvaluateTask): Float64Array[] =>
    programs.map((program) => evaluateProgram(program, bands, length)),
  render: renderImage,
};
export type RenderHandlers = typeof RENDER_HANDLERS;
