/** The tfjs API that models and trainers are written against, whichever engine runs below it. */
import type * as core from '@tensorflow/tfjs-core';
import type * as layers from '@tensorflow/tfjs-layers';

export type Tf = typeof core & typeof layers;
