/** Small made-up Sentinel-2 products, and what the tests of them have in common. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { SAFE_EPSG, SAFE_ORIGIN } from '../../data-samples/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import type { DescribeOptions, Scene } from '../../src/ingest/scene.js';
import { encodeCog } from '../../src/raster/index.js';

export const SMALL = { size: { width: 60, height: 60 } };

export const CASES = [
  { level: 'L1C', baseline: '02.09', mask: undefined },
  { level: 'L1C', baseline: '05.09', mask: 'CLASSI_OPAQUE CLASSI_CIRRUS CLASSI_SNOW' },
  { level: 'L2A', baseline: '02.14', mask: 'SCL' },
  { level: 'L2A', baseline: '04.00', mask: 'SCL' },
] as const;

export async function describeOne(path: string, options: DescribeOptions = {}): Promise<Scene> {
  const scenes = await describeScenes(path, options);
  assert.equal(scenes.length, 1);
  return scenes[0];
}

export const bandsOf = (scene: Scene) =>
  Object.fromEntries(
    scene.groups.map((group) => [group.name, group.bands.map((band) => band.name).join(' ')]),
  );

/** A band of 600 m x 600 m at the place of the samples with one value. */
export async function writeConstant(
  path: string,
  pixel: number,
  value: number,
  { side = 600, epsg = SAFE_EPSG } = {},
) {
  const width = side / pixel;
  const bytes = encodeCog({
    width,
    height: width,
    dataType: 'uint16',
    bands: [new Uint16Array(width * width).fill(value)],
    transform: { originX: SAFE_ORIGIN.x, originY: SAFE_ORIGIN.y, pixelWidth: pixel, pixelHeight: pixel },
    epsg,
    overviews: 'nearest',
  });
  await writeFile(path, bytes);
}
