/** Principal components and minimum noise fractions. This file is apart because few threads need the package of matrices. */
import { EigenvalueDecomposition, Matrix } from 'ml-matrix';
import { singularNoise } from './errors.js';
import { choleskyFactor, inverseOfLower } from './linear-algebra.js';

export interface ComponentsTask {
  /** Symmetric, bands x bands. */
  covariance: Float64Array;
  /** Covariance of the noise; without it, the result is principal components. */
  noise?: Float64Array | undefined;
  /** Number of components to compute. */
  count: number;
}

/** Ordered from the largest eigenvalue. */
interface Components {
  /** All eigenvalues: variances of principal components, or of minimum noise fractions in units of the variance of the noise. */
  eigenvalues: Float64Array;
  /** count x bands. The largest number of each row by absolute value is positive, so that the sign does not depend on the solver. */
  weights: Float64Array;
}

/**
 * Principal components, or minimum noise fractions (Green, Berman, Switzer and Craig 1988). Runs in worker threads, because hundreds of
 * bands take half a second. Throws TW_ANALYSIS_SINGULAR_NOISE.
 */
export function pcaOrMnf({ covariance, noise, count }: ComponentsTask): Components {
  const size = Math.sqrt(covariance.length);
  const whitening = noise && whiteningOf(noise, size);
  const given = matrixOf(covariance, size);
  const matrix = whitening ? symmetric(whitening.mmul(given).mmul(whitening.transpose())) : given;
  const { realEigenvalues, eigenvectorMatrix } = new EigenvalueDecomposition(matrix, {
    assumeSymmetric: true,
  });
  const order = [...realEigenvalues.keys()].sort((a, b) => realEigenvalues[b] - realEigenvalues[a] || a - b);
  const vectors = eigenvectorMatrix.transpose();
  const rows = order.slice(0, count).map((at) => {
    const vector = Matrix.rowVector(vectors.getRow(at));
    return withSign((whitening ? vector.mmul(whitening) : vector).getRow(0));
  });
  return {
    eigenvalues: Float64Array.from(order, (at) => realEigenvalues[at]),
    weights: Float64Array.from(rows.flat()),
  };
}

function matrixOf(values: Float64Array, size: number): Matrix {
  return Matrix.from1DArray(size, size, values);
}

/** L^-1, where the covariance of the noise is L L'. With it, the noise has variance 1 in every band and no correlation between bands. */
function whiteningOf(noise: Float64Array, size: number): Matrix {
  const lower = choleskyFactor(noise, size);
  if (!lower) throw singularNoise(size);
  return matrixOf(inverseOfLower(lower, size), size);
}

/** Removes rounding errors: the product of three matrices differs from its transpose in the last bits. */
function symmetric(matrix: Matrix): Matrix {
  return matrix.add(matrix.transpose()).mul(0.5);
}

function withSign(row: number[]): number[] {
  const largest = row.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
  return largest < 0 ? row.map((value) => -value) : row;
}
