/** Algorithms that combine or convert the bands of each pixel, with the formulas of titiler 2.4 (MIT, Copyright 2021 Development Seed). */

import { medianOfSorted } from '../../utils/median.js';
import { BYTE_RANGE } from '../colours/index.js';
import { type Definition, toByte } from './algorithm-definition.js';

/** Each band is a plane in memory. */
const MAX_BANDS = 16;
const countsFrom = (least: number) => Array.from({ length: MAX_BANDS - least + 1 }, (_, i) => least + i);

/** Red, green and blue in grey (ITU-R 601-2 luma). */
const LUMA = [299 / 1000, 587 / 1000, 114 / 1000];
const BRIGHT = 127;

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

export const BAND_ALGORITHMS = {
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
      grey(planes).map((value) => (Number.isNaN(value) ? NaN : value > BRIGHT ? 255 : 0)),
    ],
  } satisfies Definition,
};
