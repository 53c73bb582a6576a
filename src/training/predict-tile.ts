/** Makes one tile with the predictions of a model for another tile, or with its clouds filled by a model. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import { conversion, type MadeTile, type NewTile } from '../derive/index.js';
import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import { type CellGroup, encodeGroup, encodeMask, joinTile, tileValidity } from '../ingest/index.js';
import {
  allocatePixels,
  type BandValidity,
  type DataType,
  declaredNodata,
  imageKey,
  Mask,
  type PixelArray,
  type Window,
} from '../raster/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  isCloudy,
  mappableMask,
  type ReadRasters,
  readAcquisitions,
  readAcquisitionWindow,
} from './acquisitions.js';
import { fillClouds } from './cloud-filling.js';
import { fillBlendedClouds } from './cloud-halo.js';
import { type HistoryFiles, imagesOf } from './date-errors.js';
import { predictionFailed } from './errors.js';
import {
  type HaloTask,
  type LoadModel,
  type ModelFiles,
  neighbourWeights,
  type TileHalo,
  tileWithHalo,
} from './halo.js';
import { boxPredictor } from './halo-prediction.js';
import { historyPlanes } from './history.js';
import type { LabelledImage } from './labelled-images.js';
import { type ModelSpec, receptiveField, withHistory } from './models/spec.js';
import { PriorFits } from './prior.js';
import { predictImage } from './windows.js';

/** Task of a child process: the prediction of one tile. */
export interface PredictTask {
  tile: NewTile;
  /** Name and files of the model. */
  model: { name: string } & ModelFiles;
  date: AcquisitionFiles;
  /** Other dates of the cell, for cloud removal of a tile that is mapped alone. */
  others?: AcquisitionFiles[];
  /** The dates of the cell that its model reads as history. Absent if it reads none. */
  history?: HistoryFiles;
  /** The surroundings of the tile. Absent if it is mapped alone. */
  halo?: TileHalo;
  /** Size at which the inputs are read and the tile is written. Default: the size of the coarsest input. */
  size?: PixelGrid;
  /** True if the bands are 8-bit counts without a scale, which are read as fractions of 255. */
  areCounts?: boolean;
  /** Names of the groups of the tile by their size, `<width>x<height>`. */
  groups: Record<string, string>;
}

/** Encoding of predicted indices, which are within -1 and 1. Ten thousandths are far below any error of a model. */
export const OUTPUT_ENCODING = {
  dataType: 'int16' as DataType,
  scale: 1e-4,
  nodata: -32768,
  maximum: 10_000,
};

/** Returns null if no pixel of the tile can be read. `fits`: those of former tiles. Throws TW_TRAIN_PREDICT. */
export async function predictTile(
  tf: Tf,
  plain: ModelSpec,
  task: PredictTask,
  load: LoadModel,
  fits = new PriorFits(),
): Promise<MadeTile | null> {
  if (plain.target.kind === 'clear') return cloudFreeTile(tf, plain, task, load, fits);
  const [pixels] = await datesOf([task.date], task.size);
  const history = task.history && (await imagesOf(plain, task.history.dates, pixels));
  const predicted = await predictPixels(tf, plain, task, pixels, load, history);
  if (!predicted) return null;
  const { stored, valid } = predicted;
  if (!valid.includes(1)) throw predictionFailed('the prediction is not finite for any of its pixels');
  const codes = pixels.mask.map((code, at) => {
    // The model does not know whether a pixel is clear.
    if (valid[at]) return code;
    // A pixel that the model could not read keeps its code of cloud, shadow or snow.
    const isBlocked = code === Mask.cloud || code === Mask.shadow || code === Mask.snow;
    return isBlocked ? code : Mask.nodata;
  });
  const { dataType, scale, nodata } = OUTPUT_ENCODING;
  const bands = [{ name: plain.name, scale, offset: 0 }];
  const encoding = { dataType, nodata, bands, stored: [stored], valid: [valid] };
  return encodePredictedTile(task, pixels, encoding, codes);
}

/** Predicted values of a tile as they are stored, and 1 where there is one. */
interface PredictedPixels {
  stored: Int16Array;
  valid: Uint8Array;
}

/** Returns null if no pixel can be read. `history`: the other dates, of which those count that the use of the task accepts. */
export async function predictPixels(
  tf: Tf,
  plain: ModelSpec,
  task: Pick<PredictTask, 'model' | 'halo' | 'history'>,
  pixels: AcquisitionPixels,
  load: LoadModel,
  history: LabelledImage[] = [],
): Promise<PredictedPixels | null> {
  const { halo } = task;
  const spec = task.history ? withHistory(plain) : plain;
  const inputMask = mappableMask(pixels, spec.inputs);
  if (!inputMask.includes(1)) return null;
  const { width, height } = pixels;
  const whole = { column: 0, row: 0, width, height };
  const planes = task.history && historyPlanes(plain, pixels, history, task.history.use, whole);
  const plane = halo
    ? await predictBlended(tf, spec, pixels, { ...task, halo }, load, planes)
    : predictAlone(tf, spec, pixels, inputMask, await load(task.model), planes);
  // Predictions can be NaN or infinite if weights or a pixel are too large.
  const valid = inputMask.map((is, at) => (is && Number.isFinite(plane[at]) ? 1 : 0));
  return { stored: storedValues(plane, valid), valid };
}

function predictAlone(
  tf: Tf,
  spec: ModelSpec,
  { width, height, bands }: AcquisitionPixels,
  inputMask: Uint8Array,
  model: LayersModel,
  history: Float32Array[] = [],
): Float32Array {
  const inputs = [...spec.inputs.map((name) => bands[name]!), ...history];
  const image = { width, height, inputs, inputMask, ...(spec.history && { history: spec.inputs.length }) };
  const [plane] = predictImage(tf, model, spec, image);
  return plane;
}

function storedValues(plane: Float32Array, valid: Uint8Array): Int16Array {
  const { scale, nodata, maximum } = OUTPUT_ENCODING;
  const stored = new Int16Array(plane.length);
  for (let i = 0; i < plane.length; i++)
    stored[i] = valid[i] ? Math.max(-maximum, Math.min(maximum, Math.round(plane[i] / scale))) : nodata;
  return stored;
}

/**
 * Models are blended within this number of pixels of a border, or half of the tile if it is smaller. Maps of patch means are smooth, so
 * that a narrower blend would be visible in them.
 */
const BLEND_RADIUS = { mean: 48, map: 16 };

/** Predicts a tile with the pixels around it, and blends the models of neighbouring cells near their common borders. */
export async function predictBlended(
  tf: Tf,
  spec: ModelSpec,
  pixels: AcquisitionPixels,
  { model, halo }: Pick<HaloTask, 'model' | 'halo'>,
  load: LoadModel,
  history?: Float32Array[],
): Promise<Float32Array> {
  const { width, height } = pixels;
  const kind = spec.target.kind === 'mean' ? 'mean' : 'map';
  const neighbours = halo.neighbours.map((one) => ({
    ...one,
    read: (window: Window) => readAcquisitionWindow(one.date, one.size, window),
  }));
  const image = await tileWithHalo(pixels, neighbours, {
    width: Math.min(receptiveField(spec), width, height),
    origin: halo.origin,
    inputs: spec.inputs,
    history,
  });
  const predict = boxPredictor(tf, spec, image);
  const plane = predict(await load(model), image.tile);
  const blended = halo.neighbours.filter((one) => one.model !== undefined);
  const radius = Math.min(BLEND_RADIUS[kind], Math.floor(Math.min(width, height) / 2));
  const own = plane.slice();
  for (const [n, { box, weights }] of neighbourWeights(pixels, blended, radius).entries()) {
    const other = blended[n].model!;
    if (other.topology.path === model.topology.path) continue;
    const { column, row } = image.tile;
    const values = predict(await load(other), { ...box, column: column + box.column, row: row + box.row });
    for (let at = 0; at < values.length; at++) {
      // A model with too large weights must not make holes in the tiles around its own.
      if (!Number.isFinite(values[at])) continue;
      const to = (box.row + Math.floor(at / box.width)) * width + box.column + (at % box.width);
      plane[to] += weights[at] * (values[at] - own[to]);
    }
  }
  return plane;
}

/** Encoding of the stored pixels, which have one plane for each band. */
interface PredictedBands extends Pick<CellGroup, 'dataType' | 'bands'> {
  nodata: number | undefined;
  stored: PixelArray[];
  valid: BandValidity[];
}

/** Encodes the pixels and the mask of a tile that a model made. `codes`: the mask of the tile. */
function encodePredictedTile(
  { tile, groups }: PredictTask,
  { width, height }: PixelGrid,
  { dataType, nodata, bands, stored, valid }: PredictedBands,
  codes: Uint8Array,
): MadeTile {
  const cell: CellGroup = {
    ...tile,
    width,
    height,
    name: groups[`${width}x${height}`],
    role: 'data',
    resampling: 'bilinear',
    dataType,
    nodata: nodata ?? null,
    colours: undefined,
    bands,
  };
  const { image, validity } = encodeGroup(cell, { bands: stored, valid });
  const { image: mask, ...figures } = encodeMask(cell, codes);
  const { coverage } = tileValidity([validity], cell);
  return { ...joinTile([image, mask]), coverage, ...figures, used: [0] };
}

/** Encoding of the pixels of a tile. */
interface StoredBands {
  dataType: DataType;
  nodata: number | undefined;
  bands: { pixels: PixelArray; scale: number; offset: number }[];
}

/** Encoding for bands that are stored in different ways. */
const DEFAULT_ENCODING = { dataType: 'int16', nodata: -32768, scale: 1e-4, offset: 0 } as const;
const REFLECTANCE_ENCODING = { dataType: 'float64', scale: 1, offset: 0, nodata: undefined } as const;

/**
 * Makes a cloud-free tile: clear pixels keep their stored values, cloudy ones are filled by a model. Returns null if no pixel with cloud or
 * shadow can be filled. Throws TW_TRAIN_PREDICT.
 */
async function cloudFreeTile(
  tf: Tf,
  spec: ModelSpec,
  task: PredictTask,
  load: LoadModel,
  fits: PriorFits,
): Promise<MadeTile | null> {
  const { date: files, others = [], size, halo } = task;
  const rasters: ReadRasters = new Map();
  const [date] = await datesOf([files], size, rasters);
  const fill = halo
    ? await fillBlendedClouds(tf, spec, date, { ...task, halo }, load, fits)
    : fillClouds(tf, await load(task.model), spec, date, await datesOf(others, size));
  if (!fill) return null;
  const { filled, planes } = fill;
  const { dataType, nodata, bands } = storedBands(spec, files, date, rasters) ?? convertedBands(spec, date);
  for (const [b, { pixels, scale, offset }] of bands.entries()) {
    const store = conversion(REFLECTANCE_ENCODING, { dataType, scale, offset, nodata })!;
    for (let at = 0; at < filled.length; at++) if (filled[at]) pixels[at] = store(planes[b][at]);
  }
  const names = spec.inputs.map((name, b) => {
    const { scale, offset } = task.areCounts ? { scale: 1, offset: 0 } : bands[b];
    return { name, commonName: name, scale, offset };
  });
  const stored = bands.map(({ pixels }) => pixels);
  const valid = spec.inputs.map((name) =>
    date.bands[name]!.every(Number.isFinite)
      ? null
      : Uint8Array.from(filled, (is, at) => Number(is || Number.isFinite(date.bands[name]![at]))),
  );
  // Other bands of the date may have data where these have none.
  const isEmpty = (at: number) => valid.every((band) => band?.[at] === 0);
  const stated = date.stated ?? date.mask;
  const codes = stated.map((code, at) =>
    filled[at] ? Mask.estimated : isEmpty(at) && !isCloudy(code) ? Mask.nodata : code,
  );
  const clear = stated.map((code) => Number(code === Mask.clear));
  const rims = {
    clear: clear.reduce((sum, is) => sum + is, 0),
    replaced: clear.reduce((sum, is, at) => sum + (is & filled[at]), 0),
  };
  const encoding = { dataType, nodata, bands: names, stored, valid };
  return { ...encodePredictedTile(task, date, encoding, codes), rims };
}

export async function datesOf(
  files: AcquisitionFiles[],
  size: PredictTask['size'],
  rasters?: ReadRasters,
): Promise<AcquisitionPixels[]> {
  const read = await readAcquisitions(files, rasters, size);
  if ('skipped' in read) throw predictionFailed(read.skipped);
  return read.dates;
}

/** Returns the stored values unchanged, if all bands have the same data type and the size of the tile. */
function storedBands(
  { inputs }: ModelSpec,
  { bands }: AcquisitionFiles,
  { width, height }: AcquisitionPixels,
  rasters: ReadRasters,
): StoredBands | undefined {
  const files = inputs.map((name) => bands[name]!);
  const read = files.map((file) => rasters.get(imageKey(file))!);
  const headers = read.map(({ header }) => header);
  const [{ dataType }] = headers;
  // Float tiles of older versions declare no nodata value.
  const nodata = declaredNodata(dataType, headers[0].nodata);
  const isAlike = headers.every(
    (header) =>
      header.dataType === dataType &&
      Object.is(declaredNodata(dataType, header.nodata), nodata) &&
      header.width === width &&
      header.height === height,
  );
  if (!isAlike) return undefined;
  return {
    dataType,
    nodata,
    bands: files.map(({ band, scale, offset }, i) => ({
      pixels: read[i]!.bands.get(band)!,
      scale,
      offset,
    })),
  };
}

function convertedBands({ inputs }: ModelSpec, date: AcquisitionPixels): StoredBands {
  const { dataType, nodata, scale, offset } = DEFAULT_ENCODING;
  const store = conversion(REFLECTANCE_ENCODING, { dataType, scale, offset, nodata })!;
  return {
    dataType,
    nodata,
    bands: inputs.map((name) => {
      const pixels = allocatePixels(dataType, date.mask.length);
      for (const [at, value] of date.bands[name]!.entries())
        pixels[at] = Number.isFinite(value) ? store(value) : nodata;
      return { pixels, scale, offset };
    }),
  };
}
