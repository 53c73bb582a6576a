/** Shared by tests of maps and series: a node with tiles, and images as arrays. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import sharp from 'sharp';
import type { TilewrightNode } from '../../src/node.js';
import { ingest, testNode } from '../support/node.js';
import { type SceneOptions, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

export interface DatedScene extends SceneOptions {
  datetime: string;
}

export interface NodeOptions {
  grid?: 'geohash' | 'quadtile';
  precision?: number;
}

/** A node with a collection `test` of scenes from `writeTestScene`: blue, green, red, nir and cloud. */
export async function nodeWithScenes(
  t: Pick<TestContext, 'after'>,
  scenes: DatedScene[],
  { grid = 'geohash', precision = 6 }: NodeOptions = {},
): Promise<{ node: TilewrightNode; folder: string }> {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  for (const [i, { datetime, ...options }] of scenes.entries()) {
    const path = await writeTestScene(join(folder, `${i}.tif`), options);
    await ingest(node, {
      href: path,
      datetime,
      collection: 'test',
      scale: 0.0001,
      maskBand: 5,
      grid,
      precision,
    });
  }
  return { node, folder };
}

export interface Rgba {
  status: number;
  width: number;
  height: number;
  /** Red, green, blue and opacity of each pixel. */
  pixels: Uint8Array;
}

/** An image that a node returns. */
export async function pictureOf(node: TilewrightNode, url: string): Promise<Rgba> {
  const answer = await node.server.inject(url);
  if (answer.statusCode !== 200) throw new Error(`${url}: ${answer.body}`);
  const { data, info } = await sharp(answer.rawPayload)
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { status: answer.statusCode, width: info.width, height: info.height, pixels: data };
}

const HALF = 20037508.342789244;

/** The map tile of a zoom that contains a point, and its bounds in EPSG:3857. */
export function mapTileAt(z: number, lon: number, lat: number) {
  const side = (2 * HALF) / 2 ** z;
  const x = Math.floor(((lon / 180) * HALF + HALF) / side);
  const mercator = (HALF / Math.PI) * Math.asinh(Math.tan((lat * Math.PI) / 180));
  const y = Math.floor((HALF - mercator) / side);
  const [west, north] = [x * side - HALF, HALF - y * side];
  return { z, x, y, west, south: north - side, east: west + side, north };
}

/** The closed ring of a box, counter-clockwise. */
export const ringOfBox = (west: number, south: number, east: number, north: number) => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
