/** Clusters by k-means (Lloyd, 1982), seeded by k-means++ (Arthur and Vassilvitskii, 2007). */
import { randomStream } from '../../random.js';
import { squaredDistance, type Vector } from './feature-vectors.js';

export interface Clustering {
  centres: Float64Array[];
  /** The number of the cluster of each vector. Clusters are numbered from the largest to the smallest. */
  labels: Uint32Array;
  /** Sum of the squared distances from the centres. */
  inertia: number;
}

const MAX_STARTS = 8;
const MAX_ITERATIONS = 100;
/** Of all starts together, distances of a round: beyond them there are fewer starts, so that the most vectors and clusters take minutes. */
const MAX_DISTANCES = 4e7;

/**
 * The best of several starts. The same for the same vectors in the same order and the same seed. There are fewer clusters than `k`
 * where fewer vectors differ. Not one vector: no cluster.
 */
export function kMeansClusters(vectors: Vector[], k: number, seed: number): Clustering {
  const { next } = randomStream(seed);
  const starts = Math.floor(MAX_DISTANCES / (k * vectors.length));
  let best: Clustering | undefined;
  for (let start = 0; start < Math.max(1, Math.min(MAX_STARTS, starts)); start++) {
    const found = refined(vectors, firstCentres(vectors, k, next));
    if (!best || found.inertia < best.inertia) best = found;
  }
  return bySize(best!);
}

/** The indices of the members of each of so many clusters. */
export function membersOf(labels: Uint32Array, clusters: number): number[][] {
  const members: number[][] = Array.from({ length: clusters }, () => []);
  for (const [i, label] of labels.entries()) members[label].push(i);
  return members;
}

/** The number of the nearest of some vectors, the first of equals. */
export function nearestIndex(vector: Vector, others: Vector[]): number {
  let nearest = 0;
  let least = Infinity;
  for (let i = 0; i < others.length; i++) {
    const distance = squaredDistance(vector, others[i]);
    if (distance < least) [nearest, least] = [i, distance];
  }
  return nearest;
}

/** Each is drawn by the square of its distance from those before it. */
function firstCentres(vectors: Vector[], k: number, random: () => number): Float64Array[] {
  const centres: Float64Array[] = [];
  const distances = new Float64Array(vectors.length).fill(Infinity);
  let weights = vectors.map(() => 1);
  while (centres.length < k) {
    const sum = weights.reduce((total, weight) => total + weight, 0);
    if (sum === 0) break;
    const centre = Float64Array.from(vectors[drawn(weights, random() * sum)]);
    centres.push(centre);
    weights = vectors.map((vector, i) => {
      distances[i] = Math.min(distances[i], squaredDistance(vector, centre));
      return distances[i];
    });
  }
  return centres;
}

function drawn(weights: number[], at: number): number {
  let rest = at;
  let last = 0;
  for (const [i, weight] of weights.entries()) {
    if (weight === 0) continue;
    last = i;
    rest -= weight;
    if (rest < 0) break;
  }
  return last;
}

function refined(vectors: Vector[], centres: Float64Array[]): Clustering {
  const labels = new Uint32Array(vectors.length);
  for (let round = 0; round < MAX_ITERATIONS; round++) {
    let moved = round === 0;
    for (const [i, vector] of vectors.entries()) {
      const label = nearestIndex(vector, centres);
      if (label === labels[i]) continue;
      labels[i] = label;
      moved = true;
    }
    // In the last round the centres stay, so that each vector is with its nearest.
    if (!moved || round === MAX_ITERATIONS - 1) break;
    moveToMeans(vectors, labels, centres);
  }
  let inertia = 0;
  for (const [i, vector] of vectors.entries()) inertia += squaredDistance(vector, centres[labels[i]]);
  return { centres, labels, inertia };
}

/** A centre that has lost all its vectors stays where it is. */
function moveToMeans(vectors: Vector[], labels: Uint32Array, centres: Float64Array[]): void {
  const sums = centres.map(({ length }) => new Float64Array(length));
  const counts = new Float64Array(centres.length);
  for (const [i, vector] of vectors.entries()) {
    const sum = sums[labels[i]];
    counts[labels[i]]++;
    for (let d = 0; d < sum.length; d++) sum[d] += vector[d];
  }
  for (const [c, centre] of centres.entries())
    if (counts[c] > 0) for (let d = 0; d < centre.length; d++) centre[d] = sums[c][d] / counts[c];
}

/** Without clusters that are empty. */
function bySize({ centres, labels, inertia }: Clustering): Clustering {
  const sizes = centres.map(() => 0);
  for (const label of labels) sizes[label]++;
  const order = [...centres.keys()].filter((c) => sizes[c] > 0).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const numberOf = new Map(order.map((c, number) => [c, number]));
  return {
    centres: order.map((c) => centres[c]),
    labels: labels.map((label) => numberOf.get(label)!),
    inertia,
  };
}
