/**
 * A hint for messages about a latitude beyond 90: longitude comes first. If the points with swapped coordinates are valid, the hint
 * includes them as `swapped`.
 */
export function axisOrderHint(points: readonly (readonly [x: number, y: number])[], swapped: string): string {
  const isValid = points.every(([x, y]) => Math.abs(x) <= 90 && Math.abs(y) <= 180);
  return `longitude comes first${isValid ? `, so perhaps ${swapped} is meant` : ''}`;
}
