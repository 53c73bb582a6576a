/** The mask of a tile: one code a pixel (`Mask`). */
import { Mask, type PixelArray } from './types.js';

/**
 * Mask codes of a quality band by a table: `codes[stored value]`, where 0 means that the band itself has nothing to say. A
 * pixel without data is 0, one with data but without a quality value is 255.
 */
export function translateCodes(
  stored: PixelArray,
  codes: Uint8Array,
  valid: Uint8Array,
  assessed: Uint8Array,
): Uint8Array {
  const mask = new Uint8Array(valid.length);
  for (let i = 0; i < mask.length; i++) {
    if (valid[i]) mask[i] = (assessed[i] && codes[stored[i]]) || Mask.notAssessed;
  }
  return mask;
}

/** Percent of code 2 (cloud) among codes 1-4; null where there is none of these. */
export function cloudCover(mask: Uint8Array): number | null {
  const counts = new Uint32Array(256);
  for (const code of mask) counts[code]++;
  const assessed = counts[Mask.clear] + counts[Mask.cloud] + counts[Mask.shadow] + counts[Mask.snow];
  return assessed === 0 ? null : (100 * counts[Mask.cloud]) / assessed;
}

type Point = [column: number, row: number];

/**
 * Convex hull of the pixels that hold data, as a closed ring of pixel corners, counter-clockwise on a map with north up;
 * null where none does. (A. M. Andrew, "Another efficient algorithm for convex hulls in two dimensions", 1979.)
 */
export function maskOutline(mask: Uint8Array, width: number, height: number): Point[] | null {
  const corners: Point[] = [];
  for (let row = 0; row < height; row++) {
    const line = mask.subarray(row * width, (row + 1) * width);
    const first = line.findIndex((code) => code !== Mask.nodata);
    if (first < 0) continue;
    const last = line.findLastIndex((code) => code !== Mask.nodata) + 1;
    corners.push([first, row], [last, row], [first, row + 1], [last, row + 1]);
  }
  if (corners.length === 0) return null;
  corners.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const upper = half(corners);
  const lower = half(corners.reverse());
  const ring = [...upper.slice(0, -1), ...lower.slice(0, -1)].reverse();
  return [...ring, ring[0]];
}

function half(points: Point[]): Point[] {
  const hull: Point[] = [];
  for (const point of points) {
    while (hull.length >= 2 && turn(hull[hull.length - 2], hull[hull.length - 1], point) <= 0) hull.pop();
    hull.push(point);
  }
  return hull;
}

const turn = (a: Point, b: Point, c: Point) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
