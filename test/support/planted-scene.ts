/** A scene whose cells have planted textures. */
import { writeFile } from 'node:fs/promises';
import { geohash } from '../../src/grid/index.js';
import { encodeCog } from '../../src/raster/index.js';

export const PLANTED = ['smooth', 'noise', 'stripes'] as const;
export type Planted = (typeof PLANTED)[number];

/** Upper left corner in degrees. */
const ORIGIN = { x: 10.02, y: 50.01 };
/** Degrees of a pixel. */
export const PLANTED_STEP = 0.0001;
export const PLANTED_PRECISION = 6;

/** The texture of a geohash of six characters; neighbours differ. */
export function plantedIn(geocode: string): Planted {
  const { west, north } = geohash.bounds(geocode);
  const { width, height } = geohash.cellSize(PLANTED_PRECISION);
  return PLANTED[(Math.round(west / width) + Math.round(north / height)) % PLANTED.length]!;
}

/**
 * Writes four bands (default names: blue, green, red and nir) of uint16 in EPSG:4326; 0 means no data. The band `constant` has one value
 * everywhere.
 */
export async function writePlantedScene(
  path: string,
  {
    width = 900,
    height = 600,
    constant,
    names = ['blue', 'green', 'red', 'nir'],
    origin = ORIGIN,
  }: {
    width?: number;
    height?: number;
    constant?: number;
    names?: string[];
    origin?: { x: number; y: number };
  } = {},
): Promise<string> {
  let state = 1;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  const brightness = Float64Array.from({ length: width * height }, (_, i) => {
    const [row, column] = [Math.floor(i / width), i % width];
    if (constant !== undefined) return constant;
    const x = origin.x + (column + 0.5) * PLANTED_STEP;
    const y = origin.y - (row + 0.5) * PLANTED_STEP;
    const noise = random();
    return {
      smooth: () => 0.1 + 0.05 * Math.sin(column / 40) * Math.cos(row / 30),
      noise: () => 0.02 + 0.2 * noise,
      stripes: () => (Math.floor(column / 2) % 2 === 0 ? 0.05 : 0.25),
    }[plantedIn(geohash.encode(x, y, PLANTED_PRECISION))]();
  });
  const bands = [0.8, 1, 1.1, 2.5].map((factor) =>
    Uint16Array.from(brightness, (value) => Math.round(10_000 * factor * value)),
  );
  const file = encodeCog({
    width,
    height,
    dataType: 'uint16',
    bands,
    transform: { originX: origin.x, originY: origin.y, pixelWidth: PLANTED_STEP, pixelHeight: PLANTED_STEP },
    epsg: 4326,
    nodata: 0,
    bandTags: names.map((description) => ({ description })),
    overviews: 'nearest',
  });
  await writeFile(path, file);
  return path;
}

/** How such a scene is ingested. */
export const PLANTED_FLAGS = [
  ...['--collection', 'planted', '--scale', '0.0001', '--precision', `${PLANTED_PRECISION}`],
];
