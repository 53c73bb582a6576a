/** The parts of an algorithm. */

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

/** A number among the parameters of an algorithm. */
export interface NumberParam {
  /** Undefined: the parameter may be left out. */
  default?: number;
  min: number;
  max: number;
  whole?: boolean;
}

export type Params = Record<string, number | undefined>;

export interface Definition {
  /** Numbers of bands that it accepts, in ascending order. */
  bands: readonly number[];
  /** Numbers of planes that it makes of these. */
  makes: (bands: number) => number;
  /** The range of values that is stretched from black to white without `rescale`. Undefined: as for bands, by their values. */
  range?: readonly [low: number, high: number];
  /** Pixels at each side of a picture whose values depend on pixels beyond it. Maps read so many more. */
  margin?: number;
  params: Record<string, NumberParam>;
  run: (planes: Planes, params: Params, pixel: MapPixelSize) => Float64Array[];
}

/** A number as titiler stores it in a byte: cut, not rounded; NaN stays. */
export const toByte = (value: number): number => Math.min(255, Math.max(0, Math.trunc(value)));
