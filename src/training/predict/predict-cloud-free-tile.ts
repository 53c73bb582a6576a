/** Makes a cloud-free tile: clear pixels keep their stored values, cloudy ones are filled by a model. */
import { conversion, type MadeTile } from '../../derive/index.js';
import type { Tf } from '../../engines/index.js';
import { allocatePixels, type DataType, declaredNodata, Mask, type PixelArray } from '../../raster/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  type ReadRasters,
  readAcquisitions,
} from '../data/index.js';
import { predictionFailed } from '../errors.js';
import { fillBlendedClouds, type LoadModel, type PriorFits } from '../halo/index.js';
import { fillClouds } from '../inference/index.js';
import type { ModelSpec } from '../models/index.js';
import { encodePredictedTile } from './encode-predicted-tile.js';
import type { PredictTask } from './predict-task.js';

/** Encoding of the pixels of a tile. */
interface StoredBands {
  dataType: DataType;
  nodata: number | undefined;
  bands: { pixels: PixelArray; scale: number; offset: number }[];
}

/** Encoding for bands that are stored in different ways. */
const DEFAULT_ENCODING = { dataType: 'int16', nodata: -32768, scale: 1e-4, offset: 0 } as const;
const REFLECTANCE = { dataType: 'float64', scale: 1, offset: 0, nodata: undefined } as const;

/** Returns null if no pixel with cloud or shadow can be filled. Throws TW_TRAIN_PREDICT. */
export async function cloudFreeTile(
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
    const store = conversion(REFLECTANCE, { dataType, scale, offset, nodata })!;
    for (let at = 0; at < filled.length; at++) if (filled[at]) pixels[at] = store(planes[b][at]);
  }
  const codes = date.mask.map((code, at) => (filled[at] ? Mask.filled : code));
  const valid = codes.map((code) => (code === Mask.nodata ? 0 : 1));
  const names = spec.inputs.map((name, b) => {
    const { scale, offset } = task.areCounts ? { scale: 1, offset: 0 } : bands[b];
    return { name, commonName: name, scale, offset };
  });
  const stored = bands.map(({ pixels }) => pixels);
  return encodePredictedTile(task, date, { dataType, nodata, bands: names, stored }, codes, valid);
}

async function datesOf(
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
  const headers = files.map(({ path }) => rasters.get(path)!.header);
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
    bands: files.map(({ path, band, scale, offset }) => ({
      pixels: rasters.get(path)!.bands.get(band)!,
      scale,
      offset,
    })),
  };
}

function convertedBands({ inputs }: ModelSpec, date: AcquisitionPixels): StoredBands {
  const { dataType, nodata, scale, offset } = DEFAULT_ENCODING;
  const store = conversion(REFLECTANCE, { dataType, scale, offset, nodata })!;
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
