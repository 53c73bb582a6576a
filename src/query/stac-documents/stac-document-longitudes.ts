/** Longitudes as disjoint spans from west to east, and the shortest arc of the globe that contains them all. */

/** Degrees from -180 to 180, west first. */
export type LongitudeSpan = [west: number, east: number];

/** The edges of touching cells differ by rounding. */
const TOUCHING_TOLERANCE_DEGREES = 1e-9;
/** If there are more spans, the two closest are merged. Gaps of more than 360 / 64 degrees are never closed. */
const MAX_SPANS = 64;

/** Adds a span to a sorted list of disjoint spans. */
export function mergeSpan(spans: LongitudeSpan[], [west, east]: LongitudeSpan): void {
  let first = 0;
  while (first < spans.length && spans[first]![1] < west - TOUCHING_TOLERANCE_DEGREES) first++;
  let end = first;
  const merged: LongitudeSpan = [west, east];
  for (; end < spans.length && spans[end]![0] <= east + TOUCHING_TOLERANCE_DEGREES; end++) {
    merged[0] = Math.min(merged[0], spans[end]![0]);
    merged[1] = Math.max(merged[1], spans[end]![1]);
  }
  spans.splice(first, end - first, merged);
  if (spans.length > MAX_SPANS) closeSmallestGap(spans);
}

function closeSmallestGap(spans: LongitudeSpan[]): void {
  let smallest = 1;
  const gap = (i: number) => spans[i]![0] - spans[i - 1]![1];
  for (let i = 2; i < spans.length; i++) if (gap(i) < gap(smallest)) smallest = i;
  spans.splice(smallest - 1, 2, [spans[smallest - 1]![0], spans[smallest]![1]]);
}

/**
 * Returns the longitudes of the smallest bounding box of all spans: the complement of the largest gap. West is greater than east if the
 * box crosses the antimeridian (RFC 7946, section 5.2). Returns -180 and 180 if there is no gap.
 */
export function bboxLongitudes(spans: LongitudeSpan[]): LongitudeSpan {
  const first = spans[0];
  const last = spans.at(-1);
  if (!first || !last) return [-180, 180];
  let west = first[0];
  let east = last[1];
  let largest = first[0] + 360 - last[1];
  for (let i = 1; i < spans.length; i++) {
    const gap = spans[i]![0] - spans[i - 1]![1];
    if (gap <= largest + TOUCHING_TOLERANCE_DEGREES) continue;
    largest = gap;
    west = spans[i]![0];
    east = spans[i - 1]![1];
  }
  return [west, east];
}
