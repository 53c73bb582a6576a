/** Detects cloud in one cell from its staged files. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Mask, nodataAsType, type PixelArray, readRaster } from '../../raster/index.js';
import { cloudModelUnreadable } from '../errors.js';
import type { CloudDetector, DetectorBand } from './choose-cloud-detector.js';
import { type BandPixels, sampleNearest } from './cloud-area-mean.js';
import { type LightgbmModel, parseLightgbm, readCloudModelFile } from './lightgbm-model.js';
import { detectCloudByReflectance } from './reflectance-detector.js';
import { detectCloudByModel } from './s2cloudless.js';

/** A cell whose files are staged. */
export interface CloudRequest extends CloudDetector {
  /** Size of the mask in pixels. */
  cell: { width: number; height: number };
  /** Folder of the staged files. */
  folder: string;
}

/** Mask codes that replace those of the cell's staged mask. */
export async function detectCloud({ cell, folder, test, bands }: CloudRequest): Promise<Uint8Array> {
  const { width, height } = cell;
  const staged = await readRaster(join(folder, 'mask.tif'));
  const valid = (staged.bands[0] as Uint8Array).map((code) => (code === Mask.nodata ? 0 : 1));
  const codes = new Uint8Array(valid.length);
  const pixels: Record<string, BandPixels> = {};
  for (const [name, band] of Object.entries(bands)) pixels[name] = await readBand(folder, band);
  if (test.kind === 'model') {
    const model = await loadModel(test.path);
    detectCloudByModel(model, pixels, valid, codes, width, height, test.pixelSize);
    return codes;
  }
  const six = Object.entries(pixels).map(([name, band]) => [name, sampleNearest(band, width, height)]);
  detectCloudByReflectance(Object.fromEntries(six), valid, codes);
  return codes;
}

/** Physical values; NaN for pixels without data. */
async function readBand(
  folder: string,
  { group, band, scale, offset, nodata }: DetectorBand,
): Promise<BandPixels> {
  const { header, bands } = await readRaster(join(folder, `${group}.tif`), [band]);
  const stored = bands[0] as PixelArray;
  const hole = nodataAsType(header.dataType, nodata ?? undefined);
  const pixels = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) pixels[i] = stored[i] === hole ? NaN : stored[i] * scale + offset;
  return { pixels, width: header.width, height: header.height };
}

let loaded: { path: string; changed: number; model: LightgbmModel } | undefined;

/** Reads the model again if the file has changed. */
async function loadModel(path: string): Promise<LightgbmModel> {
  const { mtimeMs: changed } = await stat(path).catch((error) => {
    throw cloudModelUnreadable.because(error, path, error);
  });
  if (loaded?.path !== path || loaded.changed !== changed)
    loaded = { path, changed, model: parseLightgbm(await readCloudModelFile(path), path) };
  return loaded.model;
}
