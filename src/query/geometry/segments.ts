/** Line segments with an exact test against rectangles. */
import { orient2d } from 'robust-predicates';
import type { Bbox } from '../../geocode/index.js';
import type { Point } from './shape.js';

/** Fewer segments than this are looked through one by one. */
const FEW = 48;
const MAX_STRIPS = 256;
/** Degrees; strips of less than nothing to speak of would be cut by rounding. */
const FLAT = 1e-9;

/**
 * Segments, found by their latitudes: the latitudes are cut into strips of equal height, and `strips[i]` names every
 * segment that reaches into strip i.
 */
export class Segments {
  /** ax, ay, bx, by of each segment. */
  private readonly ends: Float64Array;
  private readonly strips: number[][];
  private readonly south: number;
  private readonly perDegree: number;

  /** The segments between the points of each line. */
  constructor(lines: readonly (readonly Point[])[]) {
    const ends = lines.flatMap((line) => line.slice(1).flatMap((to, i) => [...line[i]!, ...to]));
    this.ends = Float64Array.from(ends);
    const count = ends.length / 4;
    const latitudes = lines.flat().map((point) => point[1]);
    this.south = latitudes.reduce((a, b) => Math.min(a, b), Infinity);
    const height = latitudes.reduce((a, b) => Math.max(a, b), -Infinity) - this.south;
    const strips = count < FEW || height < FLAT ? 1 : Math.min(MAX_STRIPS, Math.ceil(count / 16));
    this.perDegree = strips === 1 ? 0 : strips / height;
    this.strips = Array.from({ length: strips }, () => []);
    for (let i = 0; i < count; i++) {
      const [ay, by] = [this.ends[4 * i + 1]!, this.ends[4 * i + 3]!];
      const last = this.stripAt(Math.max(ay, by));
      for (let strip = this.stripAt(Math.min(ay, by)); strip <= last; strip++) this.strips[strip]!.push(i);
    }
  }

  /** Whether a segment meets a rectangle: with `open`, its inside, else also its edge. */
  meet(box: Bbox, open: boolean): boolean {
    const last = this.stripAt(box[3]);
    for (let strip = this.stripAt(box[1]); strip <= last; strip++) {
      for (const i of this.strips[strip]!) if (this.meets(i, box, open)) return true;
    }
    return false;
  }

  /** Whether a point that lies on no segment is inside the rings that the segments make, by the even-odd rule. */
  surround(x: number, y: number): boolean {
    const { ends } = this;
    let inside = false;
    for (const i of this.strips[this.stripAt(y)]!) {
      const [ay, by] = [ends[4 * i + 1]!, ends[4 * i + 3]!];
      if (ay > y === by > y) continue;
      const side = orient2d(ends[4 * i]!, ay, ends[4 * i + 2]!, by, x, y);
      if (side > 0 === by > ay) inside = !inside;
    }
    return inside;
  }

  private stripAt(y: number): number {
    const strip = Math.floor((y - this.south) * this.perDegree);
    return Math.max(0, Math.min(this.strips.length - 1, strip));
  }

  /**
   * By separating axes: a segment and a rectangle are apart where a line along an edge of the rectangle or along the
   * segment parts them. `orient2d` is exact in sign (Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast
   * Robust Geometric Predicates", 1997), so the answer is exact for the given numbers.
   */
  private meets(i: number, [west, south, east, north]: Bbox, open: boolean): boolean {
    const { ends } = this;
    const [ax, ay, bx, by] = [ends[4 * i]!, ends[4 * i + 1]!, ends[4 * i + 2]!, ends[4 * i + 3]!];
    const [minX, maxX, minY, maxY] = [Math.min(ax, bx), Math.max(ax, bx), Math.min(ay, by), Math.max(ay, by)];
    if (maxX < west || minX > east || maxY < south || minY > north) return false;
    if (open && (maxX <= west || minX >= east || maxY <= south || minY >= north)) return false;
    if (minX === maxX || minY === maxY) return true;
    // Of the corners, these two lie farthest to both sides of the segment's line.
    const rises = bx > ax === by > ay;
    const left = orient2d(ax, ay, bx, by, west, rises ? north : south);
    const right = orient2d(ax, ay, bx, by, east, rises ? south : north);
    if (left === 0 || right === 0) return !open;
    return left > 0 !== right > 0;
  }
}
