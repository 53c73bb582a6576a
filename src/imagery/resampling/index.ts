/** Resampling kernels, separate from rendering. */
export { RESAMPLINGS, type Resampling, sampleBand } from './sample.js';
