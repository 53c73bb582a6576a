/** Small rasters written by tests. */
import { writeFile } from 'node:fs/promises';
import { encodeCog } from '../../src/raster/index.js';

export interface SceneOptions {
  width?: number;
  height?: number;
  seed?: number;
  /** Outer corner of the upper left pixel in UTM zone 33 north. */
  x?: number;
  y?: number;
  pixel?: number;
  nodata?: number;
  /** Columns without data at the western edge. */
  edge?: number;
  /** Percent of the columns, from the east, that are cloud in the fifth band. */
  cloud?: number;
}

/** A scene of blue, green, red, nir and a cloud band, uint16, in EPSG:32633; smooth with some noise. */
export async function writeTestScene(path: string, options: SceneOptions = {}): Promise<string> {
  const {
    width = 300,
    height = 260,
    seed = 1,
    x = 500_000,
    y = 5_300_000,
    pixel = 10,
    nodata = 0,
    edge = 0,
    cloud = 0,
  } = options;
  let state = seed;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  const bands = [600, 800, 700, 3000].map((base, b) => {
    const band = new Uint16Array(width * height);
    for (let i = 0; i < band.length; i++) {
      const column = i % width;
      const row = Math.floor(i / width);
      const wave = Math.sin(column / (9 + b) + seed) * Math.cos(row / (7 + b)) * base * 0.3;
      band[i] = column < edge ? nodata : Math.round(base + wave + random() * 50);
    }
    return band;
  });
  const clouds = Uint16Array.from({ length: width * height }, (_, i) =>
    i % width >= width * (1 - cloud / 100) ? 1 : 0,
  );
  const names = ['blue', 'green', 'red', 'nir', 'cloud'];
  const file = encodeCog({
    width,
    height,
    dataType: 'uint16',
    bands: [...bands, clouds],
    transform: { originX: x, originY: y, pixelWidth: pixel, pixelHeight: pixel },
    epsg: 32633,
    nodata,
    bandTags: names.map((description) => ({ description })),
    overviews: 'nearest',
  });
  await writeFile(path, file);
  return path;
}

/** Flags that describe such a scene. */
export const SCENE_FLAGS = [
  '--collection',
  'test',
  '--scale',
  '0.0001',
  '--mask-band',
  '5',
  '--precision',
  '6',
];
