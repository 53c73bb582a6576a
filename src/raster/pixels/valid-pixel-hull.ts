/** The outline of valid pixels. */

/** Corner of a pixel: column 0 and row 0 are the upper left corner of the image. */
export type PixelCorner = [column: number, row: number];

/**
 * Convex hull of all pixels that are not 0, through their outer corners: a closed ring, counter-clockwise as seen with north
 * up (rows run south). Null if all pixels are 0. Monotone chain (Andrew 1979) over the outermost corners of each row, which
 * are already sorted.
 */
export function convexHull(mask: Uint8Array, width: number, height: number): PixelCorner[] | null {
  const left: PixelCorner[] = [];
  const right: PixelCorner[] = [];
  for (let row = 0; row < height; row++) {
    const start = row * width;
    let first = 0;
    while (first < width && mask[start + first] === 0) first++;
    if (first === width) continue;
    let end = width;
    while (mask[start + end - 1] === 0) end--;
    left.push([first, row], [first, row + 1]);
    right.push([end, row], [end, row + 1]);
  }
  if (left.length === 0) return null;
  // Down the left side and up the right side.
  const ring = [...monotoneChain(left), ...monotoneChain(right.reverse())];
  return [...ring, ring[0]];
}

/** Keeps the points of one side of the hull, which always turns left (rows run south). */
function monotoneChain(points: PixelCorner[]): PixelCorner[] {
  const kept: PixelCorner[] = [];
  for (const point of points) {
    while (kept.length >= 2 && crossProduct(kept[kept.length - 2], kept[kept.length - 1], point) >= 0)
      kept.pop();
    kept.push(point);
  }
  return kept;
}

/** Negative for a turn to the left (rows run south); 0 for a straight line. */
function crossProduct(a: PixelCorner, b: PixelCorner, c: PixelCorner): number {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}
