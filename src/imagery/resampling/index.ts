/** Resampling kernels, separate from rendering. */
export {
  type KernelTask,
  MAX_MAIN_THREAD_STEPS,
  RESAMPLING_METHODS,
  type ResampleContext,
  type ResamplingMethod,
  resampleBand,
  resampleByKernel,
} from './resample-band.js';
