/** Algorithms for heights, with the formulas of titiler 2.4 (MIT, Copyright 2021 Development Seed). */
import { BYTE_RANGE, namedColormap } from '../colours/index.js';
import { type Definition, type Planes, toByte } from './algorithm-definition.js';

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

const MAX_STEPS = 256 ** 3 - 1;

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
      return Math.min(MAX_STEPS, Math.max(0, rounded((own - baseval!) / interval!)));
    });
    return [
      steps.map((value) => Math.floor(value / 65_536)),
      steps.map((value) => Math.floor(value / 256) % 256),
      steps.map((value) => value % 256),
    ];
  },
};

export const TERRAIN_ALGORITHMS = { hillshade, slope, contours, terrarium, terrainrgb };
