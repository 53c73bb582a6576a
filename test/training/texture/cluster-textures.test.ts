/**
 * Clusters of vectors: planted clusters are found, regardless of the order of the vectors; silhouettes against scikit-learn
 * (test/fixtures/training/reference_silhouette.py).
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  clusterTextures,
  DISTANCE_NAMES,
  type DistanceName,
  distanceBetween,
  fitScaling,
  kMeansClusters,
  nearestIndex,
  pairwise,
  silhouette,
  standardise,
} from '../../../src/training/texture/clusters.js';
import { randomStream, shuffledOrder } from '../../../src/utils/random.js';

/** Points around centres that are far apart, and the centre of each point. */
function planted(centres: number, each: number, size: number, seed: number) {
  const { next } = randomStream(seed);
  const vectors: number[][] = [];
  const truth: number[] = [];
  for (let c = 0; c < centres; c++) {
    const centre = Array.from(
      { length: size },
      (_, d) => 10 * (((c >> (d % 4)) & 1) + c * (d === 0 ? 1 : 0)),
    );
    for (let i = 0; i < each; i++) {
      vectors.push(centre.map((value) => value + next() - 0.5));
      truth.push(c);
    }
  }
  return { vectors, truth };
}

/** True if two numberings of clusters describe the same partition of the vectors. */
function samePartition(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
  const pairs = new Set(Array.from(a, (label, i) => `${label} ${b[i]}`));
  return pairs.size === new Set(Array.from(a)).size && pairs.size === new Set(Array.from(b)).size;
}

test('planted clusters are found, and their number', () => {
  for (const centres of [2, 3, 5, 8]) {
    const { vectors, truth } = planted(centres, 20, 18, centres);
    const found = clusterTextures(vectors, { seed: 1 });
    assert.equal(found.centres.length, centres);
    assert.ok(samePartition(found.labels, truth));
    for (const [i, vector] of vectors.entries())
      assert.equal(nearestIndex(standardise(vector, found.scaling), found.centres), found.labels[i]);
    assert.ok(found.curve.length > centres);
  }
});

test('planted clusters do not depend on the order of the vectors', () => {
  const { vectors, truth } = planted(5, 12, 18, 3);
  const { curve, medoids } = clusterTextures(vectors, { seed: 1 });
  for (let order = 1; order <= 10; order++) {
    const permuted = [...shuffledOrder(vectors.length, randomStream(order).next)];
    const found = clusterTextures(
      permuted.map((i) => vectors[i]!),
      { seed: 1 },
    );
    assert.ok(
      samePartition(
        found.labels,
        permuted.map((i) => truth[i]!),
      ),
      `order ${order}`,
    );
    assert.deepEqual(new Set(found.medoids.map((i) => permuted[i])), new Set(medoids));
    const point = (points: typeof curve) => points.find(({ clusters }) => clusters === 5)!;
    for (const name of DISTANCE_NAMES)
      assert.ok(Math.abs(point(found.curve)[name] - point(curve)[name]) < 1e-6, name);
  }
});

test('the number of clusters of many vectors is determined on a sample', () => {
  // The first 2,000 vectors form only two of the three clusters.
  const { next } = randomStream(4);
  const centres = [...Array(1000).fill([0, 0]), ...Array(1000).fill([9, 0]), ...Array(400).fill([0, 9])];
  const vectors: number[][] = centres.map((centre) => centre.map((value: number) => value + next()));
  const found = [1, 2].map((seed) => clusterTextures(vectors, { seed }));
  for (const { labels } of found) assert.ok(samePartition(labels, centres.map(String)));
  const { scaling, labels } = found[0]!;
  const all = vectors.map((vector) => standardise(vector, scaling));
  const ofAll = silhouette(pairwise(all, 'euclidean'), labels, 3);
  const [one, other] = found.map(({ curve }) => curve.find(({ clusters }) => clusters === 3)!.euclidean);
  for (const sampled of [one!, other!]) assert.ok(Math.abs(sampled - ofAll) < 0.005);
  assert.notEqual(one, other, 'another seed draws another sample');
});

test('a given number is used; fewer distinct vectors give fewer clusters', () => {
  const { vectors } = planted(3, 10, 4, 7);
  const given = clusterTextures(vectors, { clusters: 4, seed: 1 });
  assert.deepEqual([given.centres.length, given.curve.length], [4, 0]);
  const alike = Array.from({ length: 6 }, () => [1, 2, 3]);
  assert.equal(clusterTextures(alike, { clusters: 3, seed: 1 }).centres.length, 1);
  assert.equal(clusterTextures(alike, { seed: 1 }).centres.length, 1);
  assert.deepEqual([...clusterTextures([[4, 5]], { seed: 1 }).labels], [0]);
});

test('k-means: every vector belongs to its nearest centre, each centre is the mean of its vectors, and larger clusters come first', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 2, maxLength: 2 }), {
        minLength: 1,
        maxLength: 30,
      }),
      fc.integer({ min: 1, max: 6 }),
      (vectors, k) => {
        const { centres, labels, inertia } = kMeansClusters(vectors, k, 1);
        const sizes = centres.map((_, c) => labels.filter((label) => label === c).length);
        assert.ok(centres.length >= 1 && centres.length <= k);
        assert.ok(sizes.every((size, c) => size > 0 && (c === 0 || size <= sizes[c - 1]!)));
        let sum = 0;
        for (const [i, vector] of vectors.entries()) {
          const distances = centres.map((centre) => distanceBetween.euclidean(vector, centre));
          assert.ok(distances[labels[i]!]! <= Math.min(...distances) + 1e-9);
          sum += distances[labels[i]!]! ** 2;
        }
        assert.ok(Math.abs(sum - inertia) < 1e-6 * Math.max(1, sum));
        assert.deepEqual(kMeansClusters(vectors, k, 1), { centres, labels, inertia });
      },
    ),
    { seed: 1 },
  );
});

test('k-means that has not converged still assigns each vector to its nearest centre', () => {
  const { next } = randomStream(5);
  const vectors = Array.from({ length: 10_000 }, () => [next() ** 3]);
  const { centres, labels } = kMeansClusters(vectors, 25, 1);
  for (const [i, vector] of vectors.entries()) assert.equal(labels[i], nearestIndex(vector, centres));
});

test('the silhouette follows its definition', () => {
  const vectors = [[0], [1], [10], [11], [30]];
  const labels = Uint32Array.of(0, 0, 1, 1, 2);
  // The first vector has a = 1 and b = (10 + 11) / 2. The last one, alone in its cluster, has 0.
  const expected = [1 - 1 / 10.5, 1 - 1 / 9.5, 1 - 1 / 9.5, 1 - 1 / 10.5, 0].reduce((a, b) => a + b) / 5;
  assert.ok(Math.abs(silhouette(pairwise(vectors, 'euclidean'), labels, 3) - expected) < 1e-6);
  assert.ok(Math.abs(silhouette(pairwise(vectors, 'manhattan'), labels, 3) - expected) < 1e-6);
});

interface SilhouetteCase {
  count: number;
  size: number;
  clusters: number;
  common: number;
  silhouettes: Record<DistanceName, number>;
}

const cases: SilhouetteCase[] = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/training/silhouette.json', import.meta.url), 'utf8'),
);

function fraction(i: number, factor: number): number {
  const value = 43758.5453 * Math.sin(factor * (i + 1));
  return value - Math.floor(value);
}

/** The formula of reference_silhouette.py. */
function clustersOf({ count, size, clusters, common }: SilhouetteCase) {
  const labels = Uint32Array.from({ length: count }, (_, i) =>
    i < clusters ? i : Math.floor((clusters - 1) * fraction(i, 78.233)),
  );
  const vectors = Array.from(labels, (label, i) =>
    Array.from(
      { length: size },
      (_, d) => fraction(i * size + d, 12.9898) - 0.5 + common * (fraction(label * size + d, 39.425) - 0.5),
    ),
  );
  return { vectors, labels };
}

for (const one of cases)
  test(`silhouettes of ${one.count} vectors in ${one.clusters} clusters match scikit-learn`, () => {
    const { vectors, labels } = clustersOf(one);
    for (const name of DISTANCE_NAMES) {
      const actual = silhouette(pairwise(vectors, name), labels, one.clusters);
      const expected = one.silhouettes[name];
      assert.ok(Math.abs(actual - expected) < 1e-6, `${name}: ${actual} is not ${expected}`);
    }
  });

test('distances and scaling', () => {
  assert.equal(distanceBetween.euclidean([0, 3], [4, 0]), 5);
  assert.equal(distanceBetween.manhattan([0, 3], [4, 0]), 7);
  assert.equal(distanceBetween.cosine([0, 3], [4, 0]), 1);
  assert.equal(distanceBetween.cosine([1, 1], [2, 2]) < 1e-12, true);
  assert.deepEqual([distanceBetween.cosine([0, 0], [0, 0]), distanceBetween.cosine([0, 0], [1, 0])], [0, 1]);
  const scaling = fitScaling([
    [1, 5],
    [3, 5],
  ]);
  assert.deepEqual(scaling, { means: [2, 5], deviations: [1, 1] });
  assert.deepEqual([...standardise([3, 5], scaling)], [1, 0]);
});
