/** Chooses how cloud is detected in a scene, and detects it from the staged files of its cells. */
import { stat } from 'node:fs/promises';
import { cellSizeMetres, type Grid, type PixelSize } from '../../grid/index.js';
import {
  areaMean,
  type ImageFile,
  Mask,
  type PixelArray,
  pixelAreas,
  readImage,
} from '../../raster/index.js';
import { cloudModelUnreadable } from '../errors.js';
import { referenceGroup, type Scene, type SourceBand } from '../scene.js';
import { type BandPixels, type BandSize, sampleNearest } from './filters.js';
import { type LightgbmModel, parseLightgbm, readCloudModelFile } from './lightgbm.js';
import { classifyLight } from './reflectance.js';
import { detectCloudByModel, MODEL_BANDS } from './s2cloudless.js';
import { findCloudAndShadow, type LightRaster } from './shadow.js';

/** The memory of a `LightRaster`, which threads share. */
export interface SharedLight {
  buffer: SharedArrayBuffer;
  /** Offset in the buffer, bytes. */
  offset: number;
  width: number;
  height: number;
}

/** The part of one cell in a `SharedLight`. */
export interface LightPart extends BandSize {
  left: number;
  top: number;
}

interface LightLayout extends BandSize {
  bytes: number;
  /** By geocode. */
  parts: Map<string, LightPart>;
}

/** Codes and two bands. */
const LIGHT_BYTES = 3;
/** Finer pixels are averaged: the settings of the tests were found with pixels of this size. Metres. */
const LIGHT_PIXEL_METRES = 30;

/**
 * Lays out the cells of a scene in one raster with square pixels, so that cloud can shade the ground of other cells. All cells have
 * the same number of pixels. Pixels grow if the raster needs more than `bytes` otherwise.
 */
export function layOutCells(
  grid: Grid,
  geocodes: string[],
  resolution: PixelSize,
  bytes: number,
): LightLayout {
  const places = placeCells(grid, geocodes);
  const columns = 1 + places.reduce((max, { column }) => Math.max(max, column), 0);
  const rows = 1 + places.reduce((max, { row }) => Math.max(max, row), 0);
  const sizes = geocodes.map((geocode) => cellSizeMetres(grid, geocode));
  const metres = Math.max(LIGHT_PIXEL_METRES, resolution.x, resolution.y);
  const pixelsOf = (side: 'width' | 'height', pixel: number) =>
    Math.max(1, Math.round(sizes.reduce((max, size) => Math.max(max, size[side]), 0) / pixel));
  for (let pixel = metres; ; pixel *= 1.25) {
    const width = pixelsOf('width', pixel);
    const height = pixelsOf('height', pixel);
    const size = columns * width * rows * height * LIGHT_BYTES;
    if (size > bytes && width * height > 1) continue;
    const parts = places.map(({ column, row }) => ({
      left: column * width,
      top: row * height,
      width,
      height,
    }));
    return {
      ...{ width: columns * width, height: rows * height, bytes: size },
      parts: new Map(geocodes.map((geocode, i) => [geocode, parts[i]])),
    };
  }
}

/** Columns from the west and rows from the north, from 0. Columns count along the shorter of the two ways around the Earth. */
function placeCells(grid: Grid, geocodes: string[]): { column: number; row: number }[] {
  const { west, east, north } = grid.extent;
  const bounds = geocodes.map((geocode) => grid.bounds(geocode));
  const { west: left, east: right, north: top, south: bottom } = bounds[0];
  const around = Math.round((east - west) / (right - left));
  const places = bounds.map((cell) => ({
    column: Math.round((cell.west - west) / (right - left)),
    row: Math.round((north - cell.north) / (top - bottom)),
  }));
  const used = [...new Set(places.map(({ column }) => column))].sort((a, b) => a - b);
  // The scene begins behind the widest gap.
  const gap = (i: number) => (i === 0 ? used[0] + around - used.at(-1)! : used[i] - used[i - 1]);
  const first = used[used.reduce((widest, _, i) => (gap(i) > gap(widest) ? i : widest), 0)];
  const highest = places.reduce((min, { row }) => Math.min(min, row), Infinity);
  return places.map(({ column, row }) => ({
    column: (column - first + around) % around,
    row: row - highest,
  }));
}

/** A cell whose files are staged. */
interface StagedCell {
  /** Size of the mask in pixels. */
  cell: BandSize;
  /** By the names of the groups. */
  images: Record<string, ImageFile>;
}

/** A cell of a scene in whose raster cloud was found. */
export interface FoundCloud extends StagedCell {
  light: SharedLight;
  part: LightPart;
}

/** A cell for the operator's model. */
export interface ModelledCloud extends StagedCell {
  test: Extract<CloudDetection, { kind: 'model' }>;
  bands: CloudDetector['bands'];
}

/** A cell whose pixels are classified. */
export interface ClassifiedLight extends FoundCloud {
  bands: CloudDetector['bands'];
}

/** Mask codes that replace those of the cell's staged mask. */
export async function detectCloud(request: FoundCloud | ModelledCloud): Promise<Uint8Array> {
  const { width, height } = request.cell;
  const valid = await readValid(request.images);
  const codes = new Uint8Array(valid.length);
  if ('test' in request) {
    const { test, bands } = request;
    const pixels = await readBands(request.images, bands);
    detectCloudByModel(await loadModel(test.path), pixels, valid, codes, width, height, test.pixelSize);
    return codes;
  }
  const { light, part } = request;
  const raster = lightRaster(light);
  const found = new Uint8Array(part.width * part.height);
  for (let row = 0; row < part.height; row++) {
    const start = (part.top + row) * light.width + part.left;
    found.set(raster.codes.subarray(start, start + part.width), row * part.width);
  }
  const sampled = sampleNearest({ ...part, pixels: found }, width, height);
  return codes.map((_, at) => (valid[at] === 0 ? Mask.nodata : sampled[at]));
}

/** Classifies the pixels of a cell into its part of the raster of the scene. */
export async function classifyCell({ cell, images, bands, light, part }: ClassifiedLight): Promise<void> {
  const valid = await readValid(images);
  const pixels = Object.entries(await readBands(images, bands)).map(([name, band]) => {
    const { width, height } = band;
    const isValid = sampleNearest({ ...cell, pixels: valid }, width, height);
    const own = band.pixels.map((value, at) => (isValid[at] === 0 ? NaN : value));
    return [name, areaMean(own, pixelAreas(band, part))];
  });
  const share = areaMean(Float32Array.from(valid), pixelAreas(cell, part));
  const holdsData = Uint8Array.from(share, (value) => Number(value > 0));
  classifyLight(Object.fromEntries(pixels), holdsData, part.width, lightRaster(light), part);
}

/** Finds cloud and shadow in the raster of the scene when all its cells are classified. */
export function findCloudInScene(light: SharedLight, sunAzimuth: number | undefined): void {
  findCloudAndShadow(lightRaster(light), sunAzimuth);
}

function lightRaster({ buffer, offset, width, height }: SharedLight): LightRaster {
  const size = width * height;
  const [codes, nir, swir16] = [0, 1, 2].map((i) => new Uint8Array(buffer, offset + i * size, size));
  return { width, height, codes, nir, swir16 };
}

/** 1 where the staged mask holds data. */
async function readValid({ mask }: StagedCell['images']): Promise<Uint8Array> {
  const { bands } = await readImage(mask!);
  return (bands[0] as Uint8Array).map((code) => (code === Mask.nodata ? 0 : 1));
}

async function readBands(
  images: StagedCell['images'],
  bands: CloudDetector['bands'],
): Promise<Record<string, BandPixels>> {
  const pixels: Record<string, BandPixels> = {};
  for (const [name, band] of Object.entries(bands)) pixels[name] = await readBand(images[band.group]!, band);
  return pixels;
}

/** Physical values; NaN for pixels without data. */
async function readBand(image: ImageFile, { band, scale, offset }: DetectorBand): Promise<BandPixels> {
  const { header, bands, valid } = await readImage(image, [band]);
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
  /** `sunAzimuth`: degrees, clockwise from north, if it is known. */
  | { kind: 'reflectance'; sunAzimuth: number | undefined }
  /** `pixelSize`: of the mask, metres. */
  | { kind: 'model'; path: string; pixelSize: number };

/** A band among the staged files of a cell. Physical value = stored * scale + offset. */
interface DetectorBand {
  group: string;
  /** Index within the group. */
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
  // Without the band, thin cirrus remains undetected.
  const cirrus = findBands(scene, { cirrus: ['cirrus'] }, (band) => band.commonName);
  const sunAzimuth = Number.isFinite(scene.sunAzimuth) ? scene.sunAzimuth : undefined;
  return { test: { kind: 'reflectance', sunAzimuth }, bands: { ...bands, ...cirrus } };
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
