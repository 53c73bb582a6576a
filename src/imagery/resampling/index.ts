/** Resampling kernels, separate from rendering. */
export {
  type KernelOrder,
  MAX_STEPS_HERE,
  RESAMPLINGS,
  type Resampling,
  resampleByKernel,
  type SampleSource,
  sampleBand,
} from './resample-band.js';
