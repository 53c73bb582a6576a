/** Tasks of worker threads that render images. */
import { evaluateProgram, type Program } from '../../expressions/index.js';
import { renderImage } from './render-image.js';

export interface EvaluateTask {
  programs: Program[];
  bands: Float64Array[];
  length: number;
}

export const RENDER_HANDLERS = {
  evaluate: ({ programs, bands, length }: EvaluateTask): Float64Array[] =>
    programs.map((program) => evaluateProgram(program, bands, length)),
  render: renderImage,
};

export type RenderHandlers = typeof RENDER_HANDLERS;
