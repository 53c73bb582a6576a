/** Inputs of a classification. */

import { LABELS, type Labels, type SplitKind } from '../class-labels/index.js';
import { type AnalysisInputs, integer, SEED } from '../jobs/index.js';
import { isNet, type NetName } from '../spectral-cnn/index.js';
import { PRECISIONS, type Precision } from '../training-samples/index.js';
import { CLASSIFIERS, type ClassifierName } from './fit-classifier.js';

export interface ClassifyInputs extends AnalysisInputs {
  labels: Labels;
  /** Default: the best one on the pixels for tuning. */
  classifier?: ClassifierName;
  /** Unit of the split into training and validation: squares of 32 x 32 pixels, or single pixels. */
  split?: SplitKind;
  seed?: number;
  /** Passes over the labelled pixels when a network is trained. */
  epochs?: number;
  /** Default: `full`. */
  precision?: Precision;
}

/** JSON Schemas of the inputs of `classify`. */
export const CLASSIFY_PROPERTIES = {
  labels: LABELS,
  classifier: {
    enum: CLASSIFIERS,
    description: 'Default: the best of lda, logistic and mlp on the tuning pixels',
  },
  epochs: integer(1, 1000, {
    description: 'Passes of a network (cnn1d, cnn2d, resnet3d) over the labelled pixels; default: 30, 20, 12',
  }),
  precision: {
    enum: PRECISIONS,
    default: 'full',
    description: 'mixed stores spectra in float16 and halves the bytes of exchanged gradients',
  },
  seed: SEED,
  split: {
    enum: ['place', 'random'],
    default: 'place',
    description:
      'Validate on squares of 32 x 32 pixels that did not train, or on random pixels. The latter overestimates the accuracy, because neighbouring pixels are similar',
  },
};

/** Returns the requested classifier if an engine trains it. */
export function requestedNetwork({ classifier }: ClassifyInputs): NetName | undefined {
  return classifier !== undefined && isNet(classifier) ? classifier : undefined;
}
