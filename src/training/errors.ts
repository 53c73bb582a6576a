import { defineError } from '../errors.js';
import { plural } from '../plural.js';

export const unknownModel = defineError(
  'TW_TRAIN_MODEL',
  422,
  'There is no model of that name. The message lists those that exist.',
  (name: string, known: string) => `there is no model ${name}; models: ${known}`,
);

export const trainingFailed = defineError(
  'TW_TRAIN_FAILED',
  500,
  'The training of one place failed. The message says why; the other places are not touched.',
  (reason: string) => `training failed: ${reason}`,
);

export const diverged = defineError(
  'TW_TRAIN_DIVERGED',
  422,
  'The loss of one place was no longer a number. Its data may hold values that are no reflectances; the other places are not touched.',
  (epoch: number) =>
    `the loss is no number in epoch ${epoch}; look at the values of this place, or try another seed`,
);

export const predictionFailed = defineError(
  'TW_TRAIN_PREDICT',
  422,
  'A model could not be applied to a tile. The message says why; the other tiles are not touched.',
  (reason: string) => `the tile cannot be predicted: ${reason}`,
);

export const noTrainedModel = defineError(
  'TW_TRAIN_NO_MODEL',
  404,
  'There is no trained model of that id, nor a kind of model of that name. `tilewright models` lists those that were trained.',
  (id: string, known: string) =>
    `there is no model ${id}; give the id of a trained model, or ${known} for the model of each place`,
);

export const nothingTrained = defineError(
  'TW_TRAIN_NOTHING',
  422,
  'No model was trained. The message says how many places the filter picked, and why each was left out.',
  (places: number, reasons: string[]) =>
    places === 0
      ? 'no model was trained: no tile fits the filter'
      : `no model was trained, of ${plural(places, 'place')}: ${reasons.join('; ')}`,
);

export const processCrashed = defineError(
  'TW_TRAIN_CRASHED',
  500,
  'The process that trained a place ended twice, most often for want of memory. Train fewer places side by side, or fewer dates.',
  (place: string, ended: string) =>
    `the training process of ${place} ended twice (${ended}); train with fewer cores or fewer dates`,
);

export const memoryLimitExceeded = defineError(
  'TW_TRAIN_MEMORY',
  422,
  'The process of a place needed more memory than the contained mode lets it take. The other places are not touched. Give places more with `--place-memory`, or take fewer dates.',
  (limit: number, how: string) =>
    `training needed more than the ${Math.floor(limit / 1e6)} MB that a place may take (${how}); give more with --place-memory, or take fewer dates`,
);

export const unusedMemoryLimit = defineError(
  'TW_TRAIN_PLACE_MEMORY',
  422,
  'The memory of a place is held in the contained mode alone. Leave it out, or take that mode.',
  (mode: string) => `placeMemory goes with the mode contained, not with ${mode}; leave it out`,
);

export const unusedTransfer = defineError(
  'TW_TRAIN_TRANSFER',
  422,
  'Something that is about starting from models of other places was asked for where no place does. The message says what it goes with.',
  (what: string, needed: string) => `${what} with ${needed}; leave it out, or take that`,
);

export const oneCellAtATime = defineError(
  'TW_TRAIN_ONE_PLACE',
  422,
  'One place is trained outside of the server at a time, and the filter picks several. Name one by `--collection` and `--geocode`.',
  (places: number) =>
    `the filter picks ${places} places, and one is trained outside of the server at a time: give --collection and --geocode`,
);

export const cellChanged = defineError(
  'TW_TRAIN_CHANGED',
  409,
  'While a place was trained outside of the server, tiles of it came or went. Nothing of the model is kept; train it again.',
  (place: string) =>
    `the tiles of ${place} are no longer those that the model was trained on; train it again`,
);

export const wrongModel = defineError(
  'TW_TRAIN_WRONG_MODEL',
  422,
  'A model that was sent is none that this version builds, or holds what is no number. The message says what; run the same version everywhere.',
  (what: string) => `the model that was sent is not stored: ${what}`,
);

export const onnxLayer = defineError(
  'TW_TRAIN_ONNX_LAYER',
  422,
  'A layer of the model cannot be written as ONNX. Take `model.json` and `weights.bin`, which hold all of it.',
  (layer: string, what: string) =>
    `layer ${layer} (${what}) cannot be written as ONNX; take model.json and weights.bin`,
);

export const onnxWeights = defineError(
  'TW_TRAIN_ONNX_WEIGHTS',
  500,
  'The weights of a model do not fit its `model.json`. `tilewright verify` tells whether its files are damaged; train it again.',
  (what: string) => `the weights of the model do not fit its model.json: ${what}; train it again`,
);

export const nodeLost = defineError(
  'TW_TRAIN_RING',
  503,
  'A node fell out of a training in which all nodes take part in every step. Retry the job when the node runs again: it goes on from the last checkpoint. Without that node it begins anew.',
  (node: string, detail: string) =>
    `node ${node} fell out of the distributed training: ${detail}; retry the job when that node runs again, to go on from the last checkpoint, or without it, to begin anew`,
);

export const oneModelDistributed = defineError(
  'TW_TRAIN_ONE_MODEL',
  422,
  'Several models were asked for in the distributed mode, in which all nodes train one. Start a job for each of them, or train them in the partitioned mode.',
  (models: string) =>
    `all nodes train one model together, and ${models} were asked for; train each in a job of its own, or in the partitioned mode`,
);

export const mixedEngines = defineError(
  'TW_TRAIN_ENGINES',
  409,
  'The nodes that train one model together have different engines, or different versions of the program, whose results differ. Choose an engine that all of them have with `--engine`, or upgrade all nodes.',
  (engines: string) =>
    `one model cannot be trained on different engines or versions (${engines}); choose one with --engine, or upgrade all nodes`,
);

export const severalCollections = defineError(
  'TW_TRAIN_COLLECTIONS',
  422,
  'One model for all places is of one collection and one grid, and its tiles all hold reflectance or all hold 8-bit numbers without a scale; the filter picks tiles of several kinds. Name one collection with `--collection`; ingest 8-bit numbers again with `--scale`, or leave them out by the filter.',
  (collections: string) =>
    `one model for all places is of one collection and one kind of values, and the filter picks ${collections}; name one with --collection, or leave out tiles of other values by the filter`,
);

export const textureFailed = defineError(
  'TW_TRAIN_TEXTURE',
  500,
  'The texture of one place could not be computed. The message says why; the other places are not touched.',
  (reason: string) => `its texture cannot be computed: ${reason}`,
);

export const noTextures = defineError(
  'TW_TRAIN_NO_TEXTURE',
  422,
  'No place has a texture. The message says why each was left out.',
  (reasons: string[]) =>
    reasons.length === 0
      ? 'no texture was computed: no tile fits the filter'
      : `no texture was computed: ${reasons.join('; ')}`,
);

export const fewTextures = defineError(
  'TW_TRAIN_FEW_TEXTURES',
  422,
  'More clusters were asked for than places of a collection have a texture. The textures that were computed are kept, and all clusters are as they were.',
  (collection: string, places: number, clusters: number) =>
    `collection ${collection} has ${plural(places, 'place')} with a texture, too few for ${clusters} clusters; ask for fewer, for auto, or for the other collections alone`,
);

export const unknownTexture = defineError(
  'TW_TRAIN_UNKNOWN_TEXTURE',
  404,
  'It is not known what the place looks like: it has no tile, or `tilewright texture`, which computes that, has not looked at it or has skipped it. The log of that job says which places it skipped, and why.',
  (collection: string, place: string) =>
    `no texture of ${place} in collection ${collection} is known: compute it with "tilewright texture --collection ${collection}"; where that has run, the place has no tile, or was skipped, which the job's log tells`,
);
