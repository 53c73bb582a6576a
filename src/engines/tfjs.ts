/** The tfjs API that models and training use, independent of the engine. */
import type * as core from '@tensorflow/tfjs-core';
import type * as layers from '@tensorflow/tfjs-layers';

export type Tf = typeof core & typeof layers;
