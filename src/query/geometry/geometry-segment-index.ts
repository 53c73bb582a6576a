/** Line segments with an exact test against rectangles. */
import { orient2d } from 'robust-predicates';
import type { Bbox } from '../../grid/index.js';
import type { Point } from './geometry-shape.js';

/** Average number of segments in a strip. */
const SEGMENTS_PER_STRIP = 16;
const MAX_STRIPS = 256;
/** Lower shapes are not divided into strips, whose edges would be inexact. */
const MIN_HEIGHT_DEGREES = 1e-9;

/** Segments that overlap a strip of latitudes. */
interface Strip {
  /** Ordered by their western ends. */
  segments: Uint32Array;
  /** Width of the widest segment, degrees. */
  widest: number;
}

/** Finds segments by their latitudes, and then by their western ends. */
export class SegmentIndex {
  private readonly ax: Float64Array;
  private readonly ay: Float64Array;
  private readonly bx: Float64Array;
  private readonly by: Float64Array;
  private readonly strips: Strip[];
  private readonly south: number;
  private readonly perDegree: number;

  /** The segments between the points of each line. */
  constructor(lines: readonly (readonly Point[])[]) {
    const starts = lines.flatMap((line) => line.slice(0, -1));
    const ends = lines.flatMap((line) => line.slice(1));
    this.ax = Float64Array.from(starts, (point) => point[0]);
    this.ay = Float64Array.from(starts, (point) => point[1]);
    this.bx = Float64Array.from(ends, (point) => point[0]);
    this.by = Float64Array.from(ends, (point) => point[1]);
    const latitudes = lines.flat().map((point) => point[1]);
    this.south = latitudes.reduce((a, b) => Math.min(a, b), Infinity);
    const height = latitudes.reduce((a, b) => Math.max(a, b), -Infinity) - this.south;
    const count = Math.ceil(starts.length / SEGMENTS_PER_STRIP);
    const strips = height < MIN_HEIGHT_DEGREES ? 1 : Math.min(MAX_STRIPS, count);
    this.perDegree = strips === 1 ? 0 : strips / height;
    this.strips = this.fill(strips);
  }

  private fill(count: number): Strip[] {
    const { ax, ay, bx, by } = this;
    const lists: number[][] = Array.from({ length: count }, () => []);
    for (let i = 0; i < ax.length; i++) {
      const last = this.stripAt(Math.max(ay[i], by[i]), count);
      for (let strip = this.stripAt(Math.min(ay[i], by[i]), count); strip <= last; strip++)
        lists[strip].push(i);
    }
    const west = (i: number) => Math.min(ax[i], bx[i]);
    return lists.map((list) => ({
      segments: Uint32Array.from(list.sort((i, j) => west(i) - west(j))),
      widest: list.reduce((widest, i) => Math.max(widest, Math.abs(ax[i] - bx[i])), 0),
    }));
  }

  /** True if a segment meets a rectangle: with `open` its interior, otherwise also its edge. */
  intersects(box: Bbox, open: boolean): boolean {
    const [west, , east] = box;
    const last = this.stripAt(box[3]);
    for (let strip = this.stripAt(box[1]); strip <= last; strip++) {
      const { segments, widest } = this.strips[strip];
      for (let at = this.firstFrom(segments, west - widest); at < segments.length; at++) {
        const i = segments[at];
        if (this.ax[i] > east && this.bx[i] > east) break;
        if (this.segmentIntersects(i, box, open)) return true;
      }
    }
    return false;
  }

  /** Index of the first segment of a strip with a western end at or east of a longitude. */
  private firstFrom(segments: Uint32Array, longitude: number): number {
    let low = 0;
    let high = segments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const i = segments[middle];
      if (this.ax[i] < longitude || this.bx[i] < longitude) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** True if a point that is not on a segment is inside the rings of the segments, by the even-odd rule. */
  containsPoint(x: number, y: number): boolean {
    const { ax, ay, bx, by } = this;
    const { segments } = this.strips[this.stripAt(y)];
    let inside = false;
    for (let at = 0; at < segments.length; at++) {
      const i = segments[at];
      if (ax[i] > x && bx[i] > x) break;
      if (ay[i] > y === by[i] > y) continue;
      const isWest = orient2d(ax[i], ay[i], bx[i], by[i], x, y) > 0 === by[i] > ay[i];
      if (isWest) inside = !inside;
    }
    return inside;
  }

  private stripAt(y: number, count = this.strips.length): number {
    const strip = Math.floor((y - this.south) * this.perDegree);
    return Math.max(0, Math.min(count - 1, strip));
  }

  /**
   * By separating axes: a segment and a rectangle are disjoint if a line along an edge of the rectangle or along the
   * segment separates them. `orient2d` is exact in sign (Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast
   * Robust Geometric Predicates", 1997), so the answer is exact for the given numbers.
   */
  private segmentIntersects(i: number, box: Bbox, open: boolean): boolean {
    const ax = this.ax[i];
    const ay = this.ay[i];
    const bx = this.bx[i];
    const by = this.by[i];
    const west = box[0];
    const south = box[1];
    const east = box[2];
    const north = box[3];
    if ((ax < west && bx < west) || (ax > east && bx > east)) return false;
    if ((ay < south && by < south) || (ay > north && by > north)) return false;
    if (open) {
      if ((ax <= west && bx <= west) || (ax >= east && bx >= east)) return false;
      if ((ay <= south && by <= south) || (ay >= north && by >= north)) return false;
    }
    if (ax === bx || ay === by) return true;
    // These two corners are the farthest on both sides of the segment's line.
    const rises = bx > ax === by > ay;
    const left = orient2d(ax, ay, bx, by, west, rises ? north : south);
    const right = orient2d(ax, ay, bx, by, east, rises ? south : north);
    if (left === 0 || right === 0) return !open;
    return left > 0 !== right > 0;
  }
}
