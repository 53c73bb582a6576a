/** Feature vectors of equal length, and distances between them. */

export type Vector = ArrayLike<number>;

export const DISTANCE_NAMES = ['euclidean', 'manhattan', 'cosine'] as const;
export type DistanceName = (typeof DISTANCE_NAMES)[number];

/** 0 for equal vectors (cosine: for the same direction; 1 if only one vector has length 0), otherwise positive. */
export const distanceBetween: Record<DistanceName, (a: Vector, b: Vector) => number> = {
  euclidean: (a, b) => Math.sqrt(squaredDistance(a, b)),
  manhattan: (a, b) => {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
    return sum;
  },
  cosine: (a, b) => {
    const [product, ofA, ofB] = [dot(a, b), dot(a, a), dot(b, b)];
    return ofA === 0 || ofB === 0 ? Number(ofA !== ofB) : Math.max(0, 1 - product / Math.sqrt(ofA * ofB));
  },
};

export function squaredDistance(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] - b[i]) ** 2;
  return sum;
}

function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Standardisation: value minus mean, divided by the standard deviation. */
export interface FeatureScaling {
  means: number[];
  /** 1 for constant features. */
  deviations: number[];
}

/** Vectors in another order give the same result except for rounding. Without vectors the result is empty. */
export function fitScaling(vectors: Vector[]): FeatureScaling {
  const size = vectors[0]?.length ?? 0;
  const meanOf = (of: (vector: Vector) => number) =>
    vectors.reduce((sum, vector) => sum + of(vector), 0) / vectors.length;
  const means = Array.from({ length: size }, (_, i) => meanOf((vector) => vector[i]));
  const deviations = means.map((mean, i) => Math.sqrt(meanOf((vector) => (vector[i] - mean) ** 2)));
  // A deviation this small is rounding error of a constant.
  return { means, deviations: deviations.map((one, i) => (one > 1e-9 * Math.abs(means[i]) ? one : 1)) };
}

export function standardise(vector: Vector, { means, deviations }: FeatureScaling): Float64Array {
  return Float64Array.from(means, (mean, i) => (vector[i] - mean) / deviations[i]);
}
