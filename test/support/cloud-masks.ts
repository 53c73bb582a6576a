/**
 * Two images with clouds and shadows outlined by hand, 512 x 512 pixels of about 30 m, from github.com/dlr-eoc/ukis-csmask
 * (tests/testfiles); clear ground of other sensors; and scores of a mask against them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { openPromise } from 'yauzl';
import { responseWeights, SENSORS } from '../../src/hyperspectral/sensors.js';
import { dilate } from '../../src/ingest/cloud/filters.js';
import type { CloudBands } from '../../src/ingest/cloud/reflectance.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { readRaster } from '../../src/raster/index.js';

export const cloudMaskFolder = fileURLToPath(
  new URL('../../../../shared/data/cloud-masks-npz', import.meta.url),
);
export const hasCloudMasks = existsSync(cloudMaskFolder);
export const CLOUD_MASK_SETS = ['sentinel2', 'landsat5'];

export interface CloudMaskSet {
  width: number;
  height: number;
  /** Reflectance at the top of the atmosphere, 0-1. */
  bands: CloudBands;
  /** 0 without data. */
  valid: Uint8Array;
  /** 1 where a person saw cloud. */
  cloud: Uint8Array;
  shadow: Uint8Array;
  /** 1 on ground that is certainly clear: neither cloud nor shadow within 10 pixels. */
  clear: Uint8Array;
}

export async function readCloudMasks(name: string): Promise<CloudMaskSet> {
  const arrays = await readNpz(join(cloudMaskFolder, `${name}.npz`));
  const { shape, data } = arrays['img.npy'];
  const [height, width, count] = shape;
  const values = new Float32Array(data.buffer, data.byteOffset, data.length / 4);
  const band = (index: number) =>
    Float32Array.from({ length: width * height }, (_, i) => values[i * count + index]);
  const [blue, green, red, nir, swir16, swir22] = [0, 1, 2, 3, 4, 5].map(band);
  // Classes: 0 shadow, 1-3 clear, 4 cloud.
  const classes = new Uint8Array(arrays['msk.npy'].data);
  const near = dilate(
    classes.map((code) => Number(code === 0 || code === 4)),
    width,
    height,
    10,
  );
  return {
    width,
    height,
    bands: { blue, green, red, nir, swir16, swir22 },
    valid: new Uint8Array(classes.length).fill(1),
    cloud: classes.map((code) => Number(code === 4)),
    shadow: classes.map((code) => Number(code === 0)),
    clear: near.map((is) => 1 - is),
  };
}

/** Clear ground: an image, and the pixels on which neither cloud nor shadow may be found. */
export type ClearGround = Pick<CloudMaskSet, 'width' | 'height' | 'bands' | 'valid' | 'clear'>;

const dataFolder = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));

/** EnMAP over Potsdam without a cloud, in the bands of Landsat 8. Land and water. */
export async function readClearSpectra(): Promise<ClearGround> {
  const path = join(dataFolder, 'hyperspectral-enmap-potsdam', 'enmap-potsdam.tif');
  const { header, bands: stored } = await readRaster(path);
  const { width, height, nodata } = header;
  const wavelengths = header.bandTags.map(({ wavelength }) => wavelength!);
  const valid = Uint8Array.from(stored[0], (value) => Number(value !== nodata));
  const bands = SENSORS['landsat-8'].bands.slice(1, 7).map((band) => {
    const weights = responseWeights(band, wavelengths)!;
    return Float32Array.from(valid, (is, at) =>
      is === 0 ? NaN : 1e-4 * weights.reduce((sum, weight, k) => sum + (weight && weight * stored[k][at]), 0),
    );
  });
  const [blue, green, red, nir, swir16, swir22] = bands;
  return { width, height, bands: { blue, green, red, nir, swir16, swir22 }, valid, clear: valid };
}

/** A cloudy scene of Landsat 8. Its own mask, which has no shadow, says which ground is clear. */
export async function readCloudyScene(): Promise<ClearGround & { sunAzimuth: number }> {
  const [{ groups }] = await describeScenes(join(dataFolder, 'landsat8-cloudy'), {});
  const find = (name: string) => groups.flatMap(({ bands }) => bands).find((band) => band.name === name)!;
  const { header } = find('B2');
  const { width, height } = header;
  const read = async (name: string) => {
    const { header, index, scale, offset } = find(name);
    const { bands } = await readRaster(header.path, [index]);
    return Float32Array.from(bands[0], (stored) => stored * scale + offset);
  };
  const names = ['B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B9'];
  const [blue, green, red, nir, swir16, swir22, cirrus] = await Promise.all(names.map(read));
  const { bands } = await readRaster(find('BQA').header.path);
  // Bits 14-15 are the confidence of cloud, 12-13 of cirrus; 0 and 1 are none and low.
  const clear = Uint8Array.from(bands[0], (code) => Number((code >> 14) % 4 < 2 && (code >> 12) % 4 < 2));
  const valid = new Uint8Array(clear.length).fill(1);
  return {
    width,
    height,
    bands: { blue, green, red, nir, swir16, swir22, cirrus },
    valid,
    clear,
    sunAzimuth: 115.87,
  };
}

/** Arrays of a NumPy archive, by name, in C order: a zip of files with a header line (numpy.lib.format). */
async function readNpz(path: string): Promise<Record<string, { shape: number[]; data: Buffer }>> {
  const arrays: Record<string, { shape: number[]; data: Buffer }> = {};
  const zip = await openPromise(path);
  for await (const entry of zip.eachEntry()) {
    const file = await buffer(await zip.openReadStreamPromise(entry));
    const start = 10 + file.readUInt16LE(8);
    const header = file.toString('latin1', 10, start);
    if (file[6] !== 1 || !/'descr': '(<f4|\|u1)', 'fortran_order': False/.test(header)) {
      throw new Error(`${path}: cannot read ${entry.fileName} ${header}`);
    }
    const shape = /'shape': \(([\d, ]+)\)/.exec(header)![1].split(',').map(Number);
    // Copied, so that floats are aligned.
    arrays[entry.fileName] = { shape, data: Buffer.from(new Uint8Array(file.subarray(start)).buffer) };
  }
  return arrays;
}

export interface CloudScores {
  precision: number;
  recall: number;
  f1: number;
  accuracy: number;
}

/** `found` and `truth` are not 0 where there is cloud. */
export function scoreCloud(found: Uint8Array, truth: Uint8Array): CloudScores {
  let [hits, wrong, missed] = [0, 0, 0];
  for (let i = 0; i < truth.length; i++) {
    if (found[i] !== 0 && truth[i] !== 0) hits++;
    else if (found[i] !== 0) wrong++;
    else if (truth[i] !== 0) missed++;
  }
  return {
    precision: hits / (hits + wrong),
    recall: hits / (hits + missed),
    f1: (2 * hits) / (2 * hits + wrong + missed),
    accuracy: 1 - (wrong + missed) / truth.length,
  };
}
