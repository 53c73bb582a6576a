import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeCog } from '../src/raster/index.js';
import { CLOUD_OPACITY, makeSky } from './clouds.js';
import { atmosphereOf, averageSeason, dayNumber, dayOfYear, seasonOf, throughAtmosphere } from './dates.js';
import { changedLandscape, type LandChange } from './land-change.js';
import { type Landscape, makeLandscape } from './landscape.js';
import { groundReflectance, observe } from './observe.js';
import type { Region } from './regions.js';

/** One date of a series. */
export interface SeriesDate {
  /** RFC 3339, UTC. */
  datetime: string;
  /** Share of the view under clouds, 0-1. */
  cloudShare: number;
  /** True if the edge of the orbit cuts off the north-eastern corner. */
  orbitEdge?: boolean;
}

export interface SeriesOptions {
  /** Pixels of 10 m. */
  size?: { width: number; height: number };
  dates?: readonly SeriesDate[];
  seed?: number;
  /** File names consist of this name and the date. Default: `sentinel-like`. */
  name?: string;
  /** How the land differs. Default: some of every kind. */
  region?: Region;
  /** Outer corner of the upper left pixel in EPSG:32633, metres; SERIES_ORIGIN by default. */
  origin?: { x: number; y: number };
  /** With a sixth band, `swir16`. */
  swir16?: boolean;
  /** Default: the land is the same on all dates. */
  change?: LandChange;
  /** False to omit haze, gains and all of the season that is not that of an average year (`DATE_EFFECTS`). Default: true. */
  dateEffects?: boolean;
}

/** A file of a series and its ingest options. */
export interface SeriesFile {
  path: string;
  /** The file's stem. */
  id: string;
  datetime: string;
}

/** Four dates of a season: a few clouds, half clouded, nearly clear, and a cut corner. */
export const SERIES_DATES: readonly SeriesDate[] = [
  { datetime: '2023-04-18T10:06:21Z', cloudShare: 0.12 },
  { datetime: '2023-05-28T10:06:24Z', cloudShare: 0.5 },
  { datetime: '2023-07-07T10:06:22Z', cloudShare: 0.006 },
  { datetime: '2023-09-15T10:06:19Z', cloudShare: 0.2, orbitEdge: true },
];

/** Two pairs, each of a date without cloud and a cloudy one some days before it. */
export const PAIR_DATES: readonly SeriesDate[] = [
  { datetime: '2023-06-12T10:06:20Z', cloudShare: 0.3 },
  { datetime: '2023-06-17T10:06:22Z', cloudShare: 0 },
  { datetime: '2023-07-02T10:06:24Z', cloudShare: 0.35 },
  { datetime: '2023-07-07T10:06:22Z', cloudShare: 0 },
];

/** Order of the bands in a file of the series. `--bands` and `--mask-band` accept their numbers, 1 to 5. */
export const SERIES_BANDS = ['blue', 'green', 'red', 'nir', 'cloud'] as const;

/** Outer corner of the upper left pixel in EPSG:32633. The default size contains six complete geohash cells of precision 5. */
export const SERIES_ORIGIN = { x: 493_550, y: 5_301_460 };
export const SERIES_EPSG = 32_633;
export const SERIES_PIXEL = 10;
const DEFAULT_SIZE = { width: 1400, height: 1200 };
const DEFAULT_SEED = 20_230_707;

/** Blue, green, red and NIR of `Spectrum`, and the band after them if requested. */
const COLOURS = [1, 2, 3, 4];
const SWIR16 = 5;

/** Pixels of one date: digital number = reflectance x 10000, at least 1; nodata 0. `cloud` is 1 under clouds, else 0. */
export interface SeriesImage {
  blue: Uint16Array;
  green: Uint16Array;
  red: Uint16Array;
  nir: Uint16Array;
  cloud: Uint16Array;
  swir16?: Uint16Array;
}

/** The land of a series, common to its dates. */
export function seriesLandscape({
  size = DEFAULT_SIZE,
  seed = DEFAULT_SEED,
  region,
}: SeriesOptions = {}): Landscape {
  return makeLandscape({ x: 0, y: 0, ...size, pixelSize: SERIES_PIXEL }, seed, region);
}

/** The image of a landscape on one date. The same landscape, date and seed give the same pixels. */
export function seriesImage(
  landscape: Landscape,
  date: SeriesDate,
  { seed = DEFAULT_SEED, swir16 = false, dateEffects = true }: SeriesOptions = {},
): SeriesImage {
  const { view } = landscape;
  const { datetime } = date;
  const dateSeed = seed + 1000 * dayNumber(datetime);
  const season = dateEffects
    ? seasonOf(landscape, datetime, seed)
    : averageSeason(landscape, dayOfYear(datetime));
  const atmosphere = dateEffects ? atmosphereOf(view, datetime, seed) : undefined;
  const sky = makeSky(view, date.cloudShare, dateSeed + 7);
  const cloud = new Uint16Array(sky.cloud.length);
  for (let i = 0; i < cloud.length; i++) cloud[i] = sky.cloud[i] >= CLOUD_OPACITY ? 1 : 0;
  const seen = (band: number) => {
    const ground = groundReflectance(landscape, season, band);
    if (atmosphere) throughAtmosphere(ground, atmosphere, band);
    return digitalNumbers(observe(ground, sky, view.width, dateSeed + 11 * band));
  };
  const colours = COLOURS.map(seen);
  const [blue, green, red, nir] = colours as [Uint16Array, Uint16Array, Uint16Array, Uint16Array];
  const image = { blue, green, red, nir, cloud, ...(swir16 && { swir16: seen(SWIR16) }) };
  if (date.orbitEdge) cutOrbitEdge(Object.values(image), view.width, view.height);
  return image;
}

function digitalNumbers(reflectance: Float32Array): Uint16Array {
  const numbers = new Uint16Array(reflectance.length);
  for (let i = 0; i < numbers.length; i++) numbers[i] = Math.max(1, Math.round(reflectance[i] * 10_000));
  return numbers;
}

/** Sets the corner north-east of a slanting line to nodata. */
function cutOrbitEdge(bands: Uint16Array[], width: number, height: number): void {
  for (let row = 0; row < height; row++) {
    const edge = Math.round(width * (0.72 + (0.24 * row) / height));
    for (const band of bands) band.fill(0, row * width + edge, (row + 1) * width);
  }
}

/**
 * Writes one GeoTIFF per date: uint16, the bands of `SERIES_BANDS` followed by the requested ones, EPSG:32633, nodata 0, scale 0.0001 on
 * the reflectances. Creates the folder if it does not exist.
 */
export async function writeSentinelLikeSeries(
  folder: string,
  options: SeriesOptions = {},
): Promise<SeriesFile[]> {
  await mkdir(folder, { recursive: true });
  const { origin = SERIES_ORIGIN, name: series = 'sentinel-like' } = options;
  const { change, seed = DEFAULT_SEED } = options;
  const before = seriesLandscape(options);
  const after = change && changedLandscape(before, change, seed);
  const { width, height } = before.view;
  const files: SeriesFile[] = [];
  for (const date of options.dates ?? SERIES_DATES) {
    const isChanged = change && Date.parse(date.datetime) >= Date.parse(change.from);
    const image = seriesImage(isChanged ? after! : before, date, options);
    const bands = Object.entries(image) as [string, Uint16Array][];
    const id = `${series}_${date.datetime.slice(0, 10).replaceAll('-', '')}`;
    const bytes = encodeCog({
      width,
      height,
      dataType: 'uint16',
      bands: bands.map(([, pixels]) => pixels),
      transform: {
        originX: origin.x,
        originY: origin.y,
        pixelWidth: SERIES_PIXEL,
        pixelHeight: SERIES_PIXEL,
      },
      epsg: SERIES_EPSG,
      nodata: 0,
      bandTags: bands.map(([name]) =>
        name === 'cloud' ? { description: name } : { description: name, scale: 0.0001, offset: 0 },
      ),
      metadata: { ACQUISITION_DATETIME: date.datetime, PLATFORM: 'synthetic' },
      overviews: 'nearest',
    });
    const path = join(folder, `${id}.tif`);
    await writeFile(path, bytes);
    files.push({ path, id, datetime: date.datetime });
  }
  return files;
}
