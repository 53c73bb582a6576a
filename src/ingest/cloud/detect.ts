/** Chooses how cloud is detected in a scene, and detects it in one cell from its staged files. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Mask, type PixelArray, readRaster } from '../../raster/index.js';
import { cloudModelUnreadable } from '../errors.js';
import { referenceGroup, type Scene, type SourceBand } from '../scene.js';
import { type BandPixels, sampleNearest } from './filters.js';
import { type LightgbmModel, parseLightgbm, readCloudModelFile } from './lightgbm.js';
import { detectCloudByReflectance } from './reflectance.js';
import { detectCloudByModel, MODEL_BANDS } from './s2cloudless.js';

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
async function readBand(folder: string, { group, band, scale, offset }: DetectorBand): Promise<BandPixels> {
  const { header, bands, valid } = await readRaster(join(folder, `${group}.tif`), [band]);
  const stored = bands[0] as PixelArray;
  const pixels = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) pixels[i] = valid[0]?.[i] === 0 ? NaN : stored[i] * scale + offset;
  return { pixels, width: header.width, height: header.height };
}

let loadedModel: { path: string; changed: number; model: LightgbmModel } | undefined;

/** Reads the model again if the file has changed. */
async function loadModel(path: string): Promise<LightgbmModel> {
  const { mtimeMs: changed } = await stat(path).catch((error) => {
    throw cloudModelUnreadable.because(error, path, error);
  });
  if (loadedModel?.path !== path || loadedModel.changed !== changed)
    loadedModel = { path, changed, model: parseLightgbm(await readCloudModelFile(path), path) };
  return loadedModel.model;
}

type CloudDetection =
  | { kind: 'reflectance' }
  /** `pixelSize`: of the mask, metres. */
  | { kind: 'model'; path: string; pixelSize: number };

/** A band among the staged files of a cell. Physical value = stored * scale + offset. */
interface DetectorBand {
  group: string;
  /** Index within the group's file. */
  band: number;
  scale: number;
  offset: number;
}

/** A detector, and the bands that it reads by the names that it uses. */
export interface CloudDetector {
  test: CloudDetection;
  bands: Record<string, DetectorBand>;
}

/** Common names of bands for each of the six inputs of the reflectance tests. */
const REFLECTANCE_BANDS: Record<string, string[]> = {
  blue: ['blue'],
  green: ['green'],
  red: ['red'],
  nir: ['nir08', 'nir'],
  swir16: ['swir16'],
  swir22: ['swir22'],
};

/**
 * The operator's model if the scene has all of its bands (Sentinel-2 L1C), whether or not the product has a mask. Otherwise
 * the reflectance tests, if the product has no mask and either allows them or the user `asked` for them. Null if cloud cannot
 * be detected, with a warning on the scene if bands are missing.
 */
export function chooseDetector(
  scene: Scene,
  modelPath: string | undefined,
  asked: boolean,
): CloudDetector | null {
  if (modelPath !== undefined) {
    const bands = findBands(scene, Object.fromEntries(MODEL_BANDS.map((name) => [name, [name]])), byName);
    const pixelSize = referenceGroup(scene).resolution.x;
    if (bands) return { test: { kind: 'model', path: modelPath, pixelSize }, bands };
  }
  if (scene.quality.length > 0 || !(scene.reflectanceTest || asked)) return null;
  const bands = findBands(scene, REFLECTANCE_BANDS, (band) => band.commonName);
  if (!bands) {
    const advice = asked ? ' (name them by --bands)' : '';
    scene.warnings.push(
      `cloud is not assessed: the tests need bands named ${Object.keys(REFLECTANCE_BANDS).join(', ')}${advice}`,
    );
    return null;
  }
  if (isUncalibrated(scene, bands)) {
    scene.warnings.push('cloud is not assessed: the tests need reflectance from 0 to 1; set --scale');
    return null;
  }
  return { test: { kind: 'reflectance' }, bands };
}

/** True for integers without a scale to reflectance: the tests would detect cloud everywhere. */
function isUncalibrated(scene: Scene, bands: Record<string, DetectorBand>): boolean {
  return Object.values(bands).some(({ group: name, scale }) => {
    const group = scene.groups.find((one) => one.name === name);
    return scale === 1 && !group?.bands[0].header.dataType.startsWith('float');
  });
}

const byName = (band: SourceBand) => band.name;

function findBands(
  scene: Scene,
  wanted: Record<string, string[]>,
  nameOf: (band: SourceBand) => string | undefined,
): Record<string, DetectorBand> | null {
  const found: Record<string, DetectorBand> = {};
  const candidates = scene.groups
    .filter((group) => group.role === 'data')
    .flatMap(({ name: group, bands }) =>
      bands.map((band, index) => {
        const { scale, offset } = band;
        return { name: nameOf(band), band: { group, band: index, scale, offset } };
      }),
    );
  for (const [as, names] of Object.entries(wanted)) {
    const [match] = names.flatMap((name) => candidates.filter((one) => one.name === name));
    if (!match) return null;
    found[as] = match.band;
  }
  return found;
}
