/**
 * Endmembers of a collection: the pixels that span the largest simplex in the space of the first components. The orthogonal projection of
 * vertex component analysis (Nascimento and Dias 2005) finds initial pixels; N-FINDR (Winter 1999) exchanges pixels as long as the volume
 * grows. Each step maximises affine functions over all pixels, so the result does not depend on the distribution of the tiles.
 */
import { inverse, Matrix } from 'ml-matrix';
import { randomStream } from '../../utils/random.js';
import { fewEndmembers } from '../errors.js';
import type { AnalysedCollection } from '../jobs/index.js';
import type { BandStatistics } from '../reproducible-sums/index.js';
import { type ExtremePixel, extremePixels } from './collection-extreme-pixels.js';

/** One endmember. Plain JSON. */
export interface Endmember {
  /** Id of its tile, and number of its pixel in the tile. */
  tile: string;
  pixel: number;
  /** Longitude and latitude of the centre of the pixel, degrees. */
  position?: [number, number];
  /** Physical values of the bands, projected to the space of the components, which removes most of the noise of the pixel. */
  spectrum: number[];
}

/** Limit of exchanges per endmember. Each pass over the tiles makes the best exchange. */
const MAX_EXCHANGES = 4;
/** Smallest relative growth of the volume for an exchange. */
const MIN_GAIN = 1e-6;

/** Throws TW_ANALYSIS_FEW_ENDMEMBERS if the pixels do not span a simplex of `count` corners. */
export async function findEndmembers(
  analysed: AnalysedCollection,
  { mean, covariance }: BandStatistics,
  count: number,
  seed: number,
): Promise<Endmember[]> {
  if (count - 1 > mean.length) throw fewEndmembers(count, mean.length + 1);
  const { weights, eigenvalues } = await analysed.compute({
    kind: 'components',
    covariance,
    count: count - 1,
  });
  if (!(eigenvalues[0] > 0)) throw fewEndmembers(count, 0);
  const axes = Matrix.from1DArray(count - 1, mean.length, Array.from(weights));
  // The last coordinate is the same for all pixels and as large as the others, so that corners are linearly independent.
  const height = 3 * Math.sqrt(eigenvalues.subarray(0, count - 1).reduce((sum, value) => sum + value, 0));
  const search = async (functions: Matrix): Promise<ExtremePixel[]> => {
    const rows = functions.subMatrix(0, functions.rows - 1, 0, count - 2).mmul(axes);
    const task = {
      kind: 'extremes' as const,
      weights: Float64Array.from(rows.to1DArray()),
      centre: mean,
      bias: Float64Array.from(functions.getColumn(count - 1), (value) => value * height),
    };
    const found = await extremePixels(analysed, functions.rows, (_, file) =>
      analysed.compute({ ...task, file }),
    );
    return found.map((one) => {
      if (!one) throw fewEndmembers(count, 0);
      return one;
    });
  };
  const pointOf = (spectrum: number[]) => {
    const less = Matrix.columnVector(spectrum.map((value, band) => value - mean[band]));
    return [...axes.mmul(less).to1DArray(), height];
  };
  analysed.job.message(`finding ${count} endmembers`);
  const corners: ExtremePixel[] = [];
  const direction = directions(seed, count);
  while (corners.length < count) {
    const points = corners.map(({ spectrum }) => pointOf(spectrum));
    const [next] = await search(Matrix.rowVector(orthogonal(direction(), points)));
    if (corners.some(({ tile, pixel }) => tile === next.tile && pixel === next.pixel))
      throw fewEndmembers(count, corners.length);
    corners.push(next);
  }
  for (let pass = 0; pass < MAX_EXCHANGES * count; pass++) {
    const simplex = new Matrix(corners.map(({ spectrum }) => pointOf(spectrum))).transpose();
    // Row k of the inverse gives the factor by which the volume grows if a point replaces corner k.
    const gains = await search(inverseOf(simplex, count));
    const best = gains.reduce((most, { value }, k) => (value > gains[most].value ? k : most), 0);
    if (gains[best].value <= 1 + MIN_GAIN) break;
    corners[best] = gains[best];
  }
  const projection = axes.transpose().mmul(axes);
  return corners.map(({ tile, pixel, position, spectrum }) => {
    const less = Matrix.columnVector(spectrum.map((value, band) => value - mean[band]));
    const projected = projection.mmul(less).to1DArray();
    return { tile, pixel, position, spectrum: projected.map((value, band) => value + mean[band]) };
  });
}

function inverseOf(simplex: Matrix, count: number): Matrix {
  try {
    return inverse(simplex);
  } catch (error) {
    throw fewEndmembers.because(error, count, count - 1);
  }
}

/** The part of a direction that is orthogonal to all points, with length 1 (Gram-Schmidt, twice against rounding errors). */
function orthogonal(direction: number[], points: number[][]): number[] {
  const basis: number[][] = [];
  const without = (vector: number[], axis: number[]) => {
    const share = dot(vector, axis);
    return vector.map((value, i) => value - share * axis[i]);
  };
  const orthogonalUnit = (vector: number[]) => {
    const rest = [...basis, ...basis].reduce(without, vector);
    const length = Math.sqrt(dot(rest, rest));
    return rest.map((value) => value / length);
  };
  for (const point of points) basis.push(orthogonalUnit(point));
  return orthogonalUnit(direction);
}

const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/** Pseudorandom directions with components between -1 and 1. */
function directions(seed: number, size: number): () => number[] {
  const { next } = randomStream(seed);
  return () => Array.from({ length: size }, () => 2 * next() - 1);
}
