/**
 * Two images with clouds outlined by hand, 512 x 512 pixels of about 30 m, from github.com/dlr-eoc/ukis-csmask (tests/testfiles),
 * and scores of a mask against them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { openPromise } from 'yauzl';
import type { CloudBands } from '../../src/ingest/cloud/reflectance.js';

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
  /** 1 where a person saw cloud. */
  cloud: Uint8Array;
}

export async function readCloudMasks(name: string): Promise<CloudMaskSet> {
  const arrays = await readNpz(join(cloudMaskFolder, `${name}.npz`));
  const { shape, data } = arrays['img.npy'];
  const [height, width, count] = shape;
  const values = new Float32Array(data.buffer, data.byteOffset, data.length / 4);
  const band = (index: number) =>
    Float32Array.from({ length: width * height }, (_, i) => values[i * count + index]);
  const [blue, green, red, nir, swir16, swir22] = [0, 1, 2, 3, 4, 5].map(band);
  return {
    width,
    height,
    bands: { blue, green, red, nir, swir16, swir22 },
    // Classes: 0 shadow, 1-3 clear, 4 cloud.
    cloud: new Uint8Array(arrays['msk.npy'].data).map((code) => (code === 4 ? 1 : 0)),
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
