/** Generates the WebAssembly text of the compute primitives of training. */
import { convolutionKernels } from './convolution.js';
import { type Code, moduleOf } from './emit.js';
import { type MultiplyAdd, plain, relaxed } from './linear-map.js';
import { poolingKernels } from './pooling.js';
import { rowKernels } from './rows.js';

const loops = (multiplyAdd: MultiplyAdd): Code =>
  moduleOf([...rowKernels(), ...poolingKernels(), ...convolutionKernels(multiplyAdd)]);

/** The module for all processors with SIMD, and the module with relaxed SIMD. */
export const plainLoops = () => loops(plain);
export const relaxedLoops = () => loops(relaxed);
