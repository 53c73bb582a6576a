/** Silhouettes of clusters (Rousseeuw, 1987). */
import { type DistanceName, distanceBetween, type Vector } from './texture-feature-vectors.js';

/** Returns the distances of all pairs, row by row: n x n values. */
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
 * Returns the mean of (b - a) / max(a, b) over the vectors, -1 to 1: a is the mean distance to the other vectors of the cluster, b to
 * those of the nearest other cluster. A vector alone in its cluster counts as 0. There must be at least two clusters, each with a vector.
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
