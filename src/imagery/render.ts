/** The last steps of rendering: an optional algorithm, and the conversion of planes to colours. A queue limits concurrent renderings. */
import { Semaphore } from '../async/index.js';
import { evaluateProgram, type Program } from '../expressions/index.js';
import { type Algorithm, applyAlgorithm, type MapPixelSize, type Planes } from './algorithms.js';
import { renderRgba, type Style } from './colours.js';
import { renderQueueFull } from './errors.js';

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

/**
 * Limits concurrent renderings, because each has its pixels in memory. Invariants: at most `running` renderings run concurrently;
 * at most `waiting` wait, and they begin in the order of the calls.
 */
export class RenderQueue {
  private readonly semaphore: Semaphore;
  private accepted = 0;

  constructor(
    private readonly running: number,
    private readonly waiting: number,
  ) {
    this.semaphore = new Semaphore(running);
  }

  /** Like `Semaphore.run`. Throws TW_IMAGERY_BUSY if too many wait. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.accepted >= this.running + this.waiting) throw renderQueueFull(this.accepted - this.running);
    this.accepted++;
    try {
      return await this.semaphore.run(work, signal);
    } finally {
      this.accepted--;
    }
  }
}
