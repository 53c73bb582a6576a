/**
 * Detects cloud by a model of s2cloudless, the pixel-wise cloud detector for Sentinel-2 L1C
 * (github.com/sentinel-hub/sentinel2-cloud-detector). The operator supplies the model file: its licence, CC BY-SA 4.0, keeps
 * it out of tilewright.
 *
 * The steps are those of its S2PixelCloudDetector: probability of each pixel, mean over a disk, threshold, dilation by a disk.
 * The threshold of 0.4 is its default; the mean over 4 pixels and the dilation by 2 are those of its example at 60 m (the
 * defaults are 1 and 1 for any pixel size).
 */
import { areaMean, Mask, pixelAreas } from '../../raster/index.js';
import { badCloudBands, badCloudModel } from '../errors.js';
import { type BandPixels, dilate, meanOverDisk, sampleNearest } from './filters.js';
import { type LightgbmModel, predictLightgbm } from './lightgbm.js';

/** Input bands of the model, in its order. */
export const MODEL_BANDS = 'B01 B02 B04 B05 B08 B8A B09 B10 B11 B12'.split(' ');

/** Metres. */
const CELL_METRES = 60;
const THRESHOLD = 0.4;
/** Cells. */
const AVERAGE_RADIUS_CELLS = 4;
const DILATION_RADIUS_CELLS = 2;

/**
 * Writes mask codes for one image of width x height pixels of `pixelSize` metres: nodata if `valid` is 0, else cloud or clear;
 * not assessed if no cell in the disk has a value of every band. `bands` are reflectances 0-1 over the same extent, each with
 * its own size; values that are not finite are ignored. The calculation uses a grid of about 60 m that ends at the image's
 * edge: neighbouring images do not share cells. Throws TW_INGEST_BAD_CLOUD_MODEL unless the model has ten features, and
 * TW_INGEST_BAD_CLOUD_BANDS if a band is missing or an array has the wrong size.
 */
export function detectCloudByModel(
  model: LightgbmModel,
  bands: Record<string, BandPixels>,
  valid: Uint8Array,
  out: Uint8Array,
  width: number,
  height: number,
  pixelSize: number,
): void {
  if (model.features !== MODEL_BANDS.length) {
    throw badCloudModel('the cloud model', `it has ${model.features} features instead of ten`);
  }
  for (const [name, { length }] of Object.entries({ valid, out })) {
    if (length !== width * height) throw badCloudBands(name, length, width * height);
  }
  const columns = Math.max(1, Math.round((width * pixelSize) / CELL_METRES));
  const rows = Math.max(1, Math.round((height * pixelSize) / CELL_METRES));
  const means = MODEL_BANDS.map((name) => {
    const band = bands[name] ?? { pixels: new Float32Array(), width, height };
    if (band.pixels.length !== band.width * band.height || band.pixels.length === 0) {
      throw badCloudBands(name, band.pixels.length, band.width * band.height);
    }
    return areaMean(
      onlyValid(band, valid, width, height),
      pixelAreas(band, { width: columns, height: rows }),
    );
  });
  const mean = meanOverDisk(probability(model, means), columns, rows, AVERAGE_RADIUS_CELLS);
  const cloud = dilate(
    Uint8Array.from(mean, (value) => (value > THRESHOLD ? 1 : 0)),
    columns,
    rows,
    DILATION_RADIUS_CELLS,
  );
  const codes = cloud.map((is, cell) =>
    is ? Mask.cloud : Number.isNaN(mean[cell]) ? Mask.notAssessed : Mask.clear,
  );
  const found = sampleNearest({ pixels: codes, width: columns, height: rows }, width, height);
  for (let i = 0; i < out.length; i++) out[i] = valid[i] === 0 ? Mask.nodata : found[i];
}

/** The band with NaN for pixels whose centre lies on an invalid pixel of the mask, or whose value is not finite. */
function onlyValid(band: BandPixels, valid: Uint8Array, width: number, height: number): Float32Array {
  const isValid = sampleNearest({ pixels: valid, width, height }, band.width, band.height);
  return band.pixels.map((value, i) => (isValid[i] !== 0 && Number.isFinite(value) ? value : NaN));
}

/** Probability of each cell; NaN if a band has no value. */
function probability(model: LightgbmModel, means: Float32Array[]): Float32Array {
  const cells = means[0].length;
  const rows = new Float32Array(cells * means.length);
  for (const [band, values] of means.entries()) {
    for (let i = 0; i < cells; i++) rows[i * means.length + band] = values[i];
  }
  const out = new Float32Array(cells);
  predictLightgbm(model, rows, out);
  return out.map((value, i) => (means.some((values) => Number.isNaN(values[i])) ? NaN : value));
}
