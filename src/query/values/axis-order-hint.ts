/**
 * For messages about points of which a latitude is beyond 90: that longitude comes first, and `turned`, the points the other way
 * round, where these are places.
 */
export function axisOrderHint(points: readonly (readonly [x: number, y: number])[], turned: string): string {
  const arePlaces = points.every(([x, y]) => Math.abs(x) <= 90 && Math.abs(y) <= 180);
  return `longitude comes first${arePlaces ? `, so perhaps ${turned} is meant` : ''}`;
}
