/** Errors of the training and the application of models. */
import { defineError } from '../errors.js';
import { plural } from '../utils/text.js';

export const unknownModel = defineError(
  'TW_TRAIN_MODEL',
  422,
  'No model has that name. The message lists the existing models.',
  (name: string, known: string) => `unknown model ${name}; models: ${known}`,
);

export const trainingFailed = defineError(
  'TW_TRAIN_FAILED',
  500,
  'The training of one place failed. The message has the reason; other places are not affected.',
  (reason: string) => `training failed: ${reason}`,
);

export const diverged = defineError(
  'TW_TRAIN_DIVERGED',
  422,
  'The loss of one place became NaN or infinite. Its data may contain values that are not reflectances; other places are not affected.',
  (epoch: number) =>
    `the loss is not finite in epoch ${epoch}; check the values of this place, or try another seed`,
);

export const baseNotUsable = defineError(
  'TW_TRAIN_BASE',
  422,
  'The base model of a regional training cannot be used: it is of another kind or another collection, its layers differ, or its files are damaged. The message has the reason. Name another model with `--base`, or leave it out to train one.',
  (id: string, reason: string) => `the base model ${id} cannot be used: ${reason}`,
);

export const predictionFailed = defineError(
  'TW_TRAIN_PREDICT',
  422,
  'A model could not be applied to a tile. The message has the reason; other tiles are not affected.',
  (reason: string) => `the tile cannot be predicted: ${reason}`,
);

export const checkFailed = defineError(
  'TW_TRAIN_CHECK',
  422,
  'The model of a place could not be applied to its new dates. The message has the reason; other places are not affected.',
  (reason: string) => `the place cannot be checked: ${reason}`,
);

export const notScored = defineError(
  'TW_TRAIN_SCORE',
  422,
  'A stored model could not be scored, or not on one tile, or no tile was scored. The message has the reason; other tiles are not affected.',
  (what: string, reason: string) => `${what} cannot be scored: ${reason}`,
);

export const noTrainedModel = defineError(
  'TW_TRAIN_NO_MODEL',
  404,
  'No trained model has that id, and no kind of model has that name. `tilewright models` lists the trained models.',
  (id: string, known: string) =>
    `unknown model ${id}; give the id of a trained model, or ${known} for the model of each place`,
);

export const noModelVersion = defineError(
  'TW_TRAIN_NO_VERSION',
  404,
  'No selected place has a version of this name of its model. `tilewright models` lists the models, and `tilewright models ID` the versions of one.',
  (kind: string, version: string) =>
    `no selected place has a version ${JSON.stringify(version)} of its model ${kind}; "tilewright models" lists the models, and "tilewright models ID" the versions of one`,
);

export const nothingTrained = defineError(
  'TW_TRAIN_NOTHING',
  422,
  'No model was trained. The message has the number of places that match the filter, and the reasons why they were skipped.',
  (cells: number, reasons: string[]) =>
    cells === 0
      ? 'no model was trained: no tile matches the filter'
      : `no model was trained, of ${plural(cells, 'place')}: ${reasons.join('; ')}`,
);

export const processCrashed = defineError(
  'TW_TRAIN_CRASHED',
  500,
  'The process that trained a place ended twice, usually because of too little memory. Train fewer places in parallel, or fewer dates.',
  (cell: string, ended: string) =>
    `the training process of ${cell} ended twice (${ended}); train with fewer cores or fewer dates`,
);

export const memoryLimitExceeded = defineError(
  'TW_TRAIN_MEMORY',
  422,
  'The process of a place exceeded its memory limit in the contained mode. Other places are not affected. Raise the limit with `--place-memory`, or use fewer dates.',
  (limit: number, how: string) =>
    `training exceeded the limit of ${Math.floor(limit / 1e6)} MB for a place (${how}); raise it with --place-memory, or use fewer dates`,
);

export const unusedMemoryLimit = defineError(
  'TW_TRAIN_PLACE_MEMORY',
  422,
  'Only the contained mode limits the memory of a place. Omit the limit, or use that mode.',
  (mode: string) => `placeMemory requires the mode contained, not ${mode}; omit it`,
);

export const unusedTransfer = defineError(
  'TW_TRAIN_TRANSFER',
  422,
  'An option for starting from models of other places was given, but no place starts from one. The message has what the option requires.',
  (option: string, required: string) => `${option} requires ${required}; omit it, or use that`,
);

export const unusableHoldOut = defineError(
  'TW_TRAIN_HOLD_OUT',
  422,
  'The dates that a training shall hold out cannot be held out. The message says why.',
  (reason: string, advice: string) => `${reason}. ${advice}`,
);

export const unusedStale = defineError(
  'TW_TRAIN_STALE',
  422,
  'The options of a new training of drifted places do not fit together. The message has the reason.',
  (reason: string) => `stale cannot be used like this: ${reason}`,
);

export const oneCellAtATime = defineError(
  'TW_TRAIN_ONE_PLACE',
  422,
  'Outside of the server, one place is trained at a time, but several places match the filter. Select one with `--collection` and `--geocode`.',
  (cells: number) =>
    `${cells} places match the filter, but outside of the server one is trained at a time: give --collection and --geocode`,
);

export const cellChanged = defineError(
  'TW_TRAIN_CHANGED',
  409,
  'Tiles of a place were added or removed while it was trained outside of the server. The model is discarded; train it again.',
  (cell: string) => `the tiles of ${cell} have changed since the model was trained; train it again`,
);

export const wrongModel = defineError(
  'TW_TRAIN_WRONG_MODEL',
  422,
  'An uploaded model is not one that this version builds, or contains values that are not finite. The message has the reason; run the same version everywhere.',
  (reason: string) => `the uploaded model was not stored: ${reason}`,
);

export const onnxLayer = defineError(
  'TW_TRAIN_ONNX_LAYER',
  422,
  'A layer of the model cannot be written as ONNX. Use `model.json` and `weights.bin`, which contain the complete model.',
  (layer: string, what: string) =>
    `layer ${layer} (${what}) cannot be written as ONNX; use model.json and weights.bin`,
);

export const onnxWeights = defineError(
  'TW_TRAIN_ONNX_WEIGHTS',
  500,
  'The weights of a model do not match its `model.json`. `tilewright verify` checks whether its files are damaged; train it again.',
  (what: string) => `the weights of the model do not match its model.json: ${what}; train it again`,
);

export const nodeLost = defineError(
  'TW_TRAIN_RING',
  503,
  'A node was lost during a distributed training, which needs all nodes in every step. Retry the job when the node runs again: it resumes from the last checkpoint. Without that node it starts from the beginning.',
  (node: string, detail: string) =>
    `node ${node} was lost during the distributed training: ${detail}; retry the job when that node runs again, to resume from the last checkpoint, or without it, to start from the beginning`,
);

export const oneModelDistributed = defineError(
  'TW_TRAIN_ONE_MODEL',
  422,
  'Several models were requested in the distributed or regional mode, in which all nodes train one. Start a job for each model, or use the partitioned mode.',
  (models: string) =>
    `all nodes train one model together, but ${models} were requested; train each in its own job, or use the partitioned mode`,
);

export const mixedEngines = defineError(
  'TW_TRAIN_ENGINES',
  409,
  'The nodes that train one model together have different engines, or different versions of the program, whose results differ. Select an engine that all of them have with `--engine`, or upgrade all nodes.',
  (engines: string) =>
    `one model cannot be trained on different engines or versions (${engines}); select one with --engine, or upgrade all nodes`,
);

export const severalCollections = defineError(
  'TW_TRAIN_COLLECTIONS',
  422,
  'One model for all places needs tiles of one collection and one grid, with either reflectance or 8-bit numbers without a scale; the filter matches tiles of several kinds. Select one collection with `--collection`; ingest 8-bit numbers again with `--scale`, or exclude them with the filter.',
  (collections: string) =>
    `one model for all places needs one collection and one kind of values, but the filter matches ${collections}; select one with --collection, or exclude tiles of other values with the filter`,
);

export const textureFailed = defineError(
  'TW_TRAIN_TEXTURE',
  500,
  'The texture of one place could not be computed. The message has the reason; other places are not affected.',
  (reason: string) => `the texture cannot be computed: ${reason}`,
);

export const noTextures = defineError(
  'TW_TRAIN_NO_TEXTURE',
  422,
  'No place has a texture. The message has the reasons why places were skipped.',
  (reasons: string[]) =>
    reasons.length === 0
      ? 'no texture was computed: no tile matches the filter'
      : `no texture was computed: ${reasons.join('; ')}`,
);

export const fewTextures = defineError(
  'TW_TRAIN_FEW_TEXTURES',
  422,
  'More clusters were requested than a collection has places with a texture. The computed textures are kept, and all clusters remain unchanged.',
  (collection: string, cells: number, clusters: number) =>
    `collection ${collection} has ${plural(cells, 'place')} with a texture, too few for ${clusters} clusters; request fewer, or auto, or only the other collections`,
);

export const unknownTexture = defineError(
  'TW_TRAIN_UNKNOWN_TEXTURE',
  404,
  'The texture of the place is unknown: the place has no tile, or `tilewright texture` has not run for it or has skipped it. The log of that job lists the skipped places with reasons.',
  (collection: string, cell: string) =>
    `the texture of ${cell} in collection ${collection} is unknown: compute it with "tilewright texture --collection ${collection}"; if that job has run, the place has no tile or was skipped (see the log of the job)`,
);
