/** Errors of geocodes and grids. */

import { defineError } from '../errors.js';

export const geocodeInvalid = defineError(
  'TW_GEOCODE_INVALID',
  400,
  'A geocode has a character that its grid does not use, or a wrong length. Use a geocode of that grid.',
  (grid: string, geocode: string, alphabet: string, min: number, max: number) =>
    `"${geocode}" is not a ${grid} geocode: use ${min} to ${max} characters of "${alphabet}"`,
);

export const geocodePrecision = defineError(
  'TW_GEOCODE_PRECISION',
  400,
  'A precision is not a whole number in the range of its grid. Use one in the range.',
  (grid: string, given: number, min: number, max: number) =>
    `${grid} does not have precision ${given}: use a whole number from ${min} to ${max}`,
);

export const geocodeOutside = defineError(
  'TW_GEOCODE_OUTSIDE',
  400,
  'A point has no cell because it is outside of the extent of the grid. Omit the point, or use a grid that contains it.',
  (grid: string, x: number, y: number) =>
    `the point ${x}, ${y} is outside of the ${grid} grid and has no cell: omit it, or use another grid`,
);

export const geocodeTooMany = defineError(
  'TW_GEOCODE_TOO_MANY',
  400,
  'An area has more cells than can be listed. Use a smaller area or a lower precision.',
  (grid: string, cells: number, precision: number, max: number) =>
    `the area has ${cells} ${grid} cells of precision ${precision}, more than ${max}: use a smaller area or a lower precision`,
);

export const gridUnknown = defineError(
  'TW_GEOCODE_GRID',
  400,
  'The name of a grid is not known. Use geohash or quadtile.',
  (name: string) => `there is no grid "${name}": use geohash or quadtile`,
);
