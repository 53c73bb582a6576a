/** How well vectors fit their clusters (Rousseeuw, 1987). */
import { type DistanceName, distanceBetween, type Vector } from './feature-vectors.js';

/** Distances of all pairs, row by row: n x n values. */
export function pairwise(vectors: Vector[], distance: DistanceName): Float32Array {
  const between = distanceBetween[distance];
  const size = vectors.length;
  const distances = new Float32Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = i + 1; j < size; j++)
      distances[i * size + j] = distances[j * size + i] = between(vectors[i], vectors[j]);
  return distances;
}

/**
 * Mean of (b - a) / max(a, b) over the vectors, -1 to 1: a is the mean distance from the others of its cluster, b from those of the
 * nearest other one. A vector alone in its cluster counts 0. Every one of the `clusters`, at least two, has a vector.
 */
export function silhouette(distances: Float32Array, labels: Uint32Array, clusters: number): number {
  const size = labels.length;
  const counts = new Float64Array(clusters);
  for (const label of labels) counts[label]++;
  let total = 0;
  for (let i = 0; i < size; i++) {
    const own = labels[i];
    if (counts[own] === 1) continue;
    const sums = new Float64Array(clusters);
    for (let j = 0; j < size; j++) sums[labels[j]] += distances[i * size + j];
    const inside = sums[own] / (counts[own] - 1);
    let nearest = Infinity;
    for (let c = 0; c < clusters; c++) if (c !== own) nearest = Math.min(nearest, sums[c] / counts[c]);
    const larger = Math.max(inside, nearest);
    if (larger > 0) total += (nearest - inside) / larger;
  }
  return total / size;
}
