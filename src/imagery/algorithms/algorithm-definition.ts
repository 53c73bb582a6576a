/** The definition of an algorithm. */

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
export interface NumberParam {
  /** Undefined if the parameter is optional without a default. */
  default?: number;
  min: number;
  max: number;
  whole?: boolean;
}

export type Params = Record<string, number | undefined>;

export interface Definition {
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
export const toByte = (value: number): number => Math.min(255, Math.max(0, Math.trunc(value)));
