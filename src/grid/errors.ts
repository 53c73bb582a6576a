/** Errors of this part. */
import { defineError } from '../errors.js';

export const geocodeInvalid = defineError(
  'TW_GEOCODE_INVALID',
  400,
  'A geocode has a character that its grid does not use, or a wrong length. Give a geocode of that grid.',
  (grid: string, geocode: string, alphabet: string, min: number, max: number) =>
    `"${geocode}" is not a ${grid} geocode: use ${min} to ${max} characters of "${alphabet}"`,
);

export const geocodePrecision = defineError(
  'TW_GEOCODE_PRECISION',
  400,
  'A precision is not a whole number in the range of its grid. Give one inside the range.',
  (grid: string, given: number, min: number, max: number) =>
    `precision ${given} is outside what ${grid} allows: give a whole number from ${min} to ${max}`,
);

export const geocodeOutside = defineError(
  'TW_GEOCODE_OUTSIDE',
  400,
  'A point has no cell because it lies outside the extent of the grid. Leave it out, or use a grid that reaches it.',
  (grid: string, x: number, y: number) =>
    `the point ${x}, ${y} lies outside the ${grid} grid and has no cell: leave it out, or use another grid`,
);

export const geocodeTooMany = defineError(
  'TW_GEOCODE_TOO_MANY',
  400,
  'An area would need more cells than can be listed at once. Give a smaller area or a lower precision.',
  (grid: string, cells: number, precision: number, max: number) =>
    `the area has ${cells} ${grid} cells of precision ${precision}, more than ${max}: give a smaller area or a lower precision`,
);

export const gridUnknown = defineError(
  'TW_GEOCODE_GRID',
  400,
  'The name of a grid is not known. Use geohash or quadtile.',
  (name: string) => `there is no grid "${name}": use geohash or quadtile`,
);
