/** Algorithms over the bands of an image, by name, with the formulas of titiler 2.4 (MIT, Copyright 2021 Development Seed). */

import { messageOf } from '../errors.js';
import { parseJson } from '../utils/json-text.js';
import { medianOfSorted } from '../utils/sorted.js';
import { namedColormap } from './colormaps.js';
import { BYTE_RANGE } from './colours.js';
import { badRenderParameter } from './errors.js';

/** One array of values for each band, row by row; NaN for no data. */
export interface Planes {
  width: number;
  height: number;
  planes: Float64Array[];
}

/** Width and height of a pixel, metres of EPSG:3857. */
export interface MapPixelSize {
  x: number;
  y: number;
}

/** A numeric parameter of an algorithm. */
interface NumberParam {
  /** Undefined if the parameter is optional without a default. */
  default?: number;
  min: number;
  max: number;
  whole?: boolean;
}

type Params = Record<string, number | undefined>;

interface Definition {
  /** Accepted numbers of bands, ascending. */
  bands: readonly number[];
  /** Number of planes that it computes. Default: 1. */
  makes?: (bands: number) => number;
  /** The range of values from black to white without `rescale`. Undefined: it depends on the values, as for bands. */
  range?: readonly [low: number, high: number];
  /** Pixels at each side of an image whose values depend on pixels beyond it. Maps read this number of additional pixels. */
  margin?: number;
  params?: Record<string, NumberParam>;
  run: (planes: Planes, params: Params, pixel: MapPixelSize) => Float64Array[];
}

/** A number as titiler stores it in a byte: truncated, not rounded. NaN stays NaN. */
const toByte = (value: number): number => Math.min(255, Math.max(0, Math.trunc(value)));

/** Each band is a plane in memory. */
const MAX_BANDS = 16;
const countsFrom = (least: number) => Array.from({ length: MAX_BANDS - least + 1 }, (_, i) => least + i);

/** Red, green and blue in grey (ITU-R 601-2 luma). */
const LUMA = [299 / 1000, 587 / 1000, 114 / 1000];
const BITONAL_THRESHOLD = 127;

const normalizedIndex: Definition = {
  bands: [2],
  range: [-1, 1],
  run: ({ planes: [a, b] }) => [
    a.map((_, i) => {
      const index = (b[i] - a[i]) / (b[i] + a[i]);
      return Number.isFinite(index) ? index : NaN;
    }),
  ],
};

/** An algorithm that computes one number from the values of a pixel in all bands. */
const statistic = (of: (values: Float64Array) => number): Definition => ({
  bands: countsFrom(1),
  run({ planes }) {
    const values = new Float64Array(planes.length);
    return [
      planes[0].map((first, i) => {
        if (Number.isNaN(first)) return NaN;
        for (const [p, plane] of planes.entries()) values[p] = plane[i];
        return of(values);
      }),
    ];
  },
});

const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);
const mean = (values: Float64Array) => sum(values) / values.length;

/** Sample variance: divided by one less than the number of values. */
function variance(values: Float64Array): number {
  const centre = mean(values);
  return values.reduce((total, value) => total + (value - centre) ** 2, 0) / (values.length - 1);
}

/** An algorithm that converts each value to a byte. */
const bytes = (of: (value: number) => number): Definition => ({
  bands: [1, 3],
  makes: (bands) => bands,
  range: BYTE_RANGE,
  run: ({ planes }) => planes.map((plane) => plane.map((value) => toByte(of(value)))),
});

const grey = (planes: Float64Array[]) =>
  planes.length === 1
    ? planes[0]
    : planes[0].map((_, i) => planes.reduce((total, plane, p) => total + plane[i] * LUMA[p], 0));

/** Algorithms that combine or convert the bands of each pixel. */
const BAND_ALGORITHMS = {
  normalizedIndex,
  cast: bytes((value) => value),
  ceil: bytes(Math.ceil),
  floor: bytes(Math.floor),
  min: statistic((values) => Math.min(...values)),
  max: statistic((values) => Math.max(...values)),
  median: statistic((values) => medianOfSorted(values.sort())),
  mean: statistic(mean),
  std: { ...statistic((values) => Math.sqrt(variance(values))), bands: countsFrom(2) },
  var: { ...statistic(variance), bands: countsFrom(2) },
  sum: statistic(sum),
  grayscale: {
    bands: [3],
    run: ({ planes }) => [grey(planes)],
  } satisfies Definition,
  bitonal: {
    bands: [1, 3],
    range: BYTE_RANGE,
    run: ({ planes }) => [
      grey(planes).map((value) => (Number.isNaN(value) ? NaN : value > BITONAL_THRESHOLD ? 255 : 0)),
    ],
  } satisfies Definition,
};

const RADIANS = Math.PI / 180;
const ONE_BAND = [1];
const BORDER_PIXELS = 3;

const margin = { min: 0, max: 99, whole: true };
const exaggeration = { default: 1, min: 1e-6, max: 1e6 };
const height = { min: -99_999, max: 99_999 };

/** Differences of a plane per pixel downwards and to the right, as in numpy.gradient: central, one-sided at the edges. */
function gradient({ width, height, planes: [plane] }: Planes): { down: Float64Array; right: Float64Array } {
  const down = new Float64Array(plane.length);
  const right = new Float64Array(plane.length);
  for (let row = 0, i = 0; row < height; row++) {
    const [above, below] = [Math.min(row, 1), Math.min(height - 1 - row, 1)];
    for (let column = 0; column < width; column++, i++) {
      const [before, after] = [Math.min(column, 1), Math.min(width - 1 - column, 1)];
      // A pixel without data has no slope, even if its neighbours have data.
      const hole = Number.isNaN(plane[i]) ? NaN : 0;
      down[i] = hole + (plane[i + below * width] - plane[i - above * width]) / (above + below);
      right[i] = hole + (plane[i + after] - plane[i - before]) / (before + after);
    }
  }
  return { down, right };
}

/** Illumination from a direction. Heights are in units of pixels, as in titiler, so zooming in flattens the relief. */
const hillshade: Definition = {
  bands: ONE_BAND,
  range: BYTE_RANGE,
  margin: BORDER_PIXELS,
  params: {
    azimuth: { default: 45, min: 0, max: 360, whole: true },
    angle_altitude: { default: 45, min: -90, max: 90 },
    buffer: margin,
    z_exaggeration: exaggeration,
  },
  run(planes, { azimuth, angle_altitude, z_exaggeration }) {
    const { down, right } = gradient(planes);
    const direction = (360 - azimuth!) * RADIANS;
    const [sine, cosine] = [Math.sin(angle_altitude! * RADIANS), Math.cos(angle_altitude! * RADIANS)];
    const shaded = down.map((_, i) => {
      const x = down[i] * z_exaggeration!;
      const y = right[i] * z_exaggeration!;
      const slope = Math.PI / 2 - Math.atan(Math.sqrt(x * x + y * y));
      const aspect = Math.atan2(-x, y);
      const light = sine * Math.sin(slope) + cosine * Math.cos(slope) * Math.cos(direction - aspect);
      return toByte((255 * (light + 1)) / 2);
    });
    return [shaded];
  },
};

/** Slope in degrees. */
const slope: Definition = {
  bands: ONE_BAND,
  range: [0, 90],
  margin: BORDER_PIXELS,
  params: { buffer: margin, z_exaggeration: exaggeration },
  run(planes, { z_exaggeration }, pixel) {
    const { down, right } = gradient(planes);
    const angles = down.map((_, i) => {
      const x = (down[i] * z_exaggeration!) / pixel.y;
      const y = (right[i] * z_exaggeration!) / pixel.x;
      return Math.atan(Math.sqrt(x * x + y * y)) / RADIANS;
    });
    return [angles];
  },
};

/** Black contour lines at equal intervals over the colormap `terrain`. */
const contours: Definition = {
  bands: ONE_BAND,
  makes: () => 3,
  range: BYTE_RANGE,
  params: {
    increment: { default: 35, min: 0, max: 999, whole: true },
    thickness: { default: 1, min: 0, max: 10, whole: true },
    minz: { default: -12_000, ...height, whole: true },
    maxz: { default: 8000, ...height, whole: true },
  },
  run({ planes: [plane] }, { increment, thickness, minz, maxz }) {
    const terrain = namedColormap('terrain')!;
    return [0, 1, 2].map((channel) =>
      plane.map((value) => {
        if (Number.isNaN(value)) return NaN;
        // The remainder has the sign of the divisor, as in Python.
        const above = ((value % increment!) + increment!) % increment!;
        if (above < thickness!) return 0;
        const share = Math.min(1, Math.max(0, (value - minz!) / (maxz! - minz!)));
        return terrain[4 * toByte(1 + 254 * share) + channel];
      }),
    );
  },
};

/** Heights in metres encoded as red, green and blue: red * 256 + green + blue / 256 - 32768. */
const terrarium: Definition = {
  bands: ONE_BAND,
  makes: () => 3,
  range: BYTE_RANGE,
  params: { nodata_height: height },
  run({ planes: [plane] }, { nodata_height = NaN }) {
    const heights = plane.map((value) =>
      Math.min(65_535, Math.max(0, (Number.isNaN(value) ? nodata_height : value) + 32_768)),
    );
    return [
      heights.map((value) => Math.trunc(value / 256)),
      heights.map((value) => Math.trunc(value % 256)),
      heights.map((value) => Math.trunc((value * 256) % 256)),
    ];
  },
};

const MAX_TERRAINRGB_STEPS = 256 ** 3 - 1;

/** Rounds to the nearest integer, ties to even, as numpy.around. */
function rounded(value: number): number {
  const near = Math.round(value);
  return near - value === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** Heights encoded as red, green and blue: baseval + interval * (red * 65536 + green * 256 + blue). */
const terrainrgb: Definition = {
  bands: ONE_BAND,
  makes: () => 3,
  range: BYTE_RANGE,
  params: {
    interval: { default: 0.1, min: 1e-6, max: 1 },
    baseval: { default: -10_000, ...height },
    nodata_height: height,
  },
  run({ planes: [plane] }, { interval, baseval, nodata_height = NaN }) {
    const steps = plane.map((value) => {
      const own = Number.isNaN(value) ? nodata_height : value;
      return Math.min(MAX_TERRAINRGB_STEPS, Math.max(0, rounded((own - baseval!) / interval!)));
    });
    return [
      steps.map((value) => Math.floor(value / 65_536)),
      steps.map((value) => Math.floor(value / 256) % 256),
      steps.map((value) => value % 256),
    ];
  },
};

/** Algorithms for heights. */
const TERRAIN_ALGORITHMS = { hillshade, slope, contours, terrarium, terrainrgb };

/** Plain data, for worker threads. */
export interface Algorithm {
  name: string;
  params: Params;
  /** Number of input bands. */
  bands: number;
}

const DEFINITIONS: Record<string, Definition> = {
  ...TERRAIN_ALGORITHMS,
  ...BAND_ALGORITHMS,
  ndi: BAND_ALGORITHMS.normalizedIndex,
};

/** Names of titiler, and `ndi` for `normalizedIndex`. */
export const ALGORITHMS: readonly string[] = Object.keys(DEFINITIONS);

const MAX_PARAMS_LENGTH = 1000;
const badParams = (why: string) => badRenderParameter('algorithm_params', why);

/** Parses an algorithm for an image of `bands` bands. `text`: its parameters, as a JSON object. Throws TW_IMAGERY_LOOK. */
export function parseAlgorithm(name: string, text: string | undefined, bands: number): Algorithm {
  const definition = Object.hasOwn(DEFINITIONS, name) ? DEFINITIONS[name] : undefined;
  if (!definition)
    throw badRenderParameter('algorithm', `"${name}" is not known: there are ${ALGORITHMS.join(', ')}`);
  if (!definition.bands.includes(bands)) {
    const [least, ...more] = definition.bands;
    const wanted = more.length > 2 ? `${least} to ${more.at(-1)}` : definition.bands.join(' or ');
    throw badRenderParameter(
      'algorithm',
      `${name} needs ${wanted} ${wanted === '1' ? 'band' : 'bands'}, not ${bands}: choose with assets and bidx, or give expressions`,
    );
  }
  const params = paramsOf(name, text, definition.params);
  const { minz, maxz } = params;
  if (minz !== undefined && maxz !== undefined && minz >= maxz)
    throw badParams(`has a minz of ${minz}, which is not below the maxz of ${maxz}`);
  return { name, params, bands };
}

function paramsOf(algorithm: string, text = '{}', known: Record<string, NumberParam> = {}): Params {
  if (text.length > MAX_PARAMS_LENGTH) throw badParams(`is longer than ${MAX_PARAMS_LENGTH} characters`);
  let given: unknown;
  try {
    given = parseJson(text);
  } catch (error) {
    throw badParams(messageOf(error).replace(/^it /, ''));
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw badParams('is not a JSON object such as {"azimuth": 315}');
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    const names = Object.keys(known);
    const advice = names.length > 0 ? `${algorithm} has ${names.join(', ')}` : `${algorithm} has none`;
    throw badParams(`has the unknown parameter "${unknown}": ${advice}`);
  }
  const values = given as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(known).map(([name, param]) => [name, numberOf(name, param, values[name])]),
  );
}

function numberOf(name: string, { default: own, min, max, whole }: NumberParam, given: unknown) {
  // Null counts as not given.
  if (given === undefined || given === null) return own;
  if (typeof given !== 'number' || given < min || given > max || (whole && !Number.isInteger(given)))
    throw badParams(`has a ${name} that is not ${whole ? 'an integer' : 'a number'} from ${min} to ${max}`);
  return given;
}

/** Number of planes that an algorithm computes. */
export const outputPlaneCount = ({ name, bands }: Algorithm): number => DEFINITIONS[name].makes?.(bands) ?? 1;

/** The range of values from black to white; undefined if it depends on the values. */
export const outputRange = ({ name }: Algorithm): Definition['range'] => DEFINITIONS[name].range;

/** Pixels that are cut off each side of a map: the requested buffer, or the pixels that depend on pixels beyond the map. */
export const borderPixels = ({ name, params }: Algorithm): number =>
  params['buffer'] ?? DEFINITIONS[name].margin ?? 0;

/** Runs an algorithm, and cuts `cut` pixels off each side. Throws TW_IMAGERY_LOOK if no pixel remains. */
export function applyAlgorithm(
  { name, params }: Algorithm,
  picture: Planes,
  pixel: MapPixelSize,
  cut: number,
): Planes {
  const width = picture.width - 2 * cut;
  const height = picture.height - 2 * cut;
  if (width < 1 || height < 1)
    throw badParams(
      `has a buffer of ${cut}, which leaves nothing of ${picture.width} x ${picture.height} pixels`,
    );
  const planes = DEFINITIONS[name].run(picture, params, pixel);
  if (cut === 0) return { width, height, planes };
  const inner = (plane: Float64Array) => {
    const out = new Float64Array(width * height);
    for (let row = 0; row < height; row++) {
      const from = (row + cut) * picture.width + cut;
      out.set(plane.subarray(from, from + width), row * width);
    }
    return out;
  };
  return { width, height, planes: planes.map(inner) };
}
