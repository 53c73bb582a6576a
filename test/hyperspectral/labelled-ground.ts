/** A node with a cube of three noisy classes and labels of some of its pixels. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ClassifyResults, readLabels } from '../../src/hyperspectral/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { ingest, testNode } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

/** Side of the cube in pixels. */
export const GROUND_SIDE = 128;
const MAP = 'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}';
const SIZE = { width: GROUND_SIDE, height: GROUND_SIDE, interleave: 'bsq' } as const;

/** The class of the ground at a pixel, 1 to 3. */
export const classAt = (pixel: number) =>
  1 + ((Math.floor((pixel % GROUND_SIDE) / 6) + Math.floor(pixel / GROUND_SIDE / 6)) % 3);

/** Writes the cube of a date. Returns its path. */
export function writeGroundCube(folder: string, name: string, date = '2024-06-01'): string {
  const next = random(3);
  const wavelengths = Array.from({ length: 18 }, (_, b) => 450 + 50 * b);
  const bands = wavelengths.map((_, b) =>
    Array.from({ length: GROUND_SIDE ** 2 }, (_, i) =>
      Math.round(3000 + 250 * classAt(i) * (b % 3) + 900 * next()),
    ),
  );
  writeEnvi(join(folder, `${name}.bsq`), {
    ...{ ...SIZE, type: 'int16', bands },
    lines: [
      ...[MAP, 'reflectance scale factor = 10000', `acquisition time = ${date}T10:00:00Z`],
      ...['wavelength units = Nanometers', `wavelength = {${wavelengths.join()}}`],
    ],
  });
  return join(folder, `${name}.hdr`);
}

/** Writes labels with the class of the ground where `isLabelled`. Returns their path. */
export function writeGroundLabels(
  folder: string,
  name: string,
  isLabelled: (column: number, row: number) => boolean,
): string {
  const codes = Array.from({ length: GROUND_SIDE ** 2 }, (_, i) =>
    isLabelled(i % GROUND_SIDE, Math.floor(i / GROUND_SIDE)) ? classAt(i) : 0,
  );
  writeEnvi(join(folder, `${name}.bsq`), {
    ...{ ...SIZE, type: 'uint8', bands: [codes] },
    lines: [MAP, 'data ignore value = 0'],
  });
  return join(folder, `${name}.hdr`);
}

export async function labelledGround(t: TestContext, isLabelled: (column: number, row: number) => boolean) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const filter = { collections: ['cubes'] };
  await ingest(node, { href: writeGroundCube(folder, 'cube'), collection: 'cubes', precision: 5 });
  const labels = await readLabels(writeGroundLabels(folder, 'labels', isLabelled));
  const classify = (inputs: object = {}) =>
    runJob<ClassifyResults>(node, 'analyse-classify', { filter, labels, classifier: 'lda', ...inputs });
  return { folder, node, filter, labels, classify };
}
