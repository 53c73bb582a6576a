/** Maps of the abundances of endmembers, which come from a library or are found in the collection. */
import { inverse, Matrix } from 'ml-matrix';
import { html } from '../../html/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { randomStream } from '../../utils/random.js';
import {
  type AnalysedCollection,
  type AnalysisInputs,
  DEFAULT_SEED,
  integer,
  SEED,
  selectBands,
} from '../analysis.js';
import { spectrumChart } from '../charts.js';
import {
  collectionStatistics,
  type ExtremePixel,
  extremePixels,
  LON_LAT_SCHEMA,
} from '../collection-passes.js';
import { fewEndmembers, libraryOrCount } from '../errors.js';
import {
  checkLibrary,
  coveredBands,
  LIBRARY,
  type Library,
  libraryCsv,
  resampledSpectra,
  resampleLibrary,
} from '../library.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { AbundanceSolver } from '../methods/abundances.js';
import { bandMap, columns, covarianceFacts, htmlTable } from '../report.js';
import type { BandStatistics } from '../sums.js';
import type { AnalysedBand } from '../tile-spectrum.js';

/** One endmember. Plain JSON. */
interface Endmember {
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

/**
 * Finds the pixels that span the largest simplex in the space of the first components. The orthogonal projection of vertex component
 * analysis (Nascimento and Dias 2005) finds initial pixels; N-FINDR (Winter 1999) exchanges pixels as long as the volume grows. Each step
 * maximises affine functions over all pixels, so the result does not depend on the distribution of the tiles. Throws
 * TW_ANALYSIS_FEW_ENDMEMBERS if the pixels do not span a simplex of `count` corners.
 */
async function findEndmembers(
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

export interface UnmixInputs extends AnalysisInputs {
  /** Number of endmembers to find in the collection. */
  endmembers?: number;
  /** Spectra of the endmembers, instead of endmembers from the collection. */
  library?: Library;
  /** `fcls`: abundances are not negative and sum to one; `nnls`: they are not negative. */
  method?: 'fcls' | 'nnls';
  seed?: number;
}

/** The pixel is absent for an endmember of a library. */
interface FoundEndmember extends Partial<Endmember> {
  name: string;
  spectrum: number[];
}

interface UnmixFit {
  endmembers: FoundEndmember[];
  /** Number of bands that the library does not cover. */
  uncovered: number;
  pixels?: number;
}

export interface UnmixResults extends MapResults {
  method: 'fcls' | 'nnls';
  endmembers: Omit<FoundEndmember, 'spectrum'>[];
  uncovered: number;
}

const MAX_ENDMEMBERS = 30;
const RESIDUAL_BAND = 'rms_residual';

export const spectralUnmixingProcess: MapAnalysis<UnmixInputs, UnmixFit> = {
  name: 'unmix',
  title: 'Spectral unmixing',
  description:
    'Maps of the abundance of each endmember, by fully constrained (fcls) or non-negative (nnls) least squares. Endmembers are found in the collection (VCA, then N-FINDR) or come from a library.',
  properties: {
    endmembers: integer(2, MAX_ENDMEMBERS, { description: 'Endmembers to find' }),
    library: LIBRARY,
    method: { enum: ['fcls', 'nnls'], default: 'fcls' },
    seed: SEED,
  },
  fit: objectOf(
    {
      endmembers: listOf(
        objectOf(
          { name: TEXT, spectrum: listOf(NUMBER) },
          { tile: TEXT, pixel: COUNT, position: LON_LAT_SCHEMA },
        ),
      ),
      uncovered: COUNT,
    },
    { pixels: COUNT },
  ),
  check: ({ endmembers, library }) => {
    if ((endmembers === undefined) === (library === undefined)) throw libraryOrCount();
    if (library) checkLibrary(library);
  },
  run: async (agreed, { endmembers: count, library, method = 'fcls', seed = DEFAULT_SEED }) => {
    let analysed: AnalysedCollection = agreed;
    let fit: UnmixFit;
    if (library) {
      analysed = selectBands(agreed, coveredBands(library, agreed.bands));
      const uncovered = agreed.bands.length - analysed.bands.length;
      fit = { endmembers: endmembersOf(library, analysed.bands), uncovered };
    } else {
      const [statistics] = await collectionStatistics(analysed, ['pixels']);
      const found = await findEndmembers(analysed, statistics, count!, seed);
      const named = found.map((one, i) => ({ name: `endmember ${i + 1}`, ...one }));
      fit = { endmembers: named, uncovered: 0, pixels: statistics.pixels };
    }
    const spectra = Float64Array.from(fit.endmembers.flatMap(({ spectrum }) => spectrum));
    const sumsToOne = method === 'fcls';
    // The constructor rejects dependent endmembers before the first tile is read.
    new AbundanceSolver(spectra, fit.endmembers.length, sumsToOne);
    return {
      map: {
        method: { kind: 'abundances', count: fit.endmembers.length, sumsToOne, endmembers: spectra },
        bands: [...fit.endmembers.map(({ name }, i) => `${i + 1} ${name}`), RESIDUAL_BAND],
      },
      analysed,
      fit,
    };
  },
  conclude: ({ endmembers, uncovered, pixels }, { method = 'fcls' }, bands) => {
    const curves = endmembers.map(({ name, spectrum }) => ({ name, values: spectrum }));
    const rows = endmembers.map(({ name, tile = '', position }) => [name, position?.join(', ') ?? '', tile]);
    return {
      summary: { method, uncovered, endmembers: endmembers.map(({ spectrum: _, ...one }) => one) },
      files: { 'endmembers.csv': libraryCsv(endmembers, bands) },
      facts: [method, ...covarianceFacts(pixels === undefined ? {} : { pixels })],
      sections: [
        {
          title: 'Endmembers',
          content: html`${spectrumChart(bands, curves)}${htmlTable(
            columns(['endmember', 'longitude, latitude', 'tile'], []),
            rows,
          )}`,
        },
      ],
      looks: [
        ...endmembers
          .slice(0, MAX_SHOWN_MAPS)
          .map(({ name }, i) => bandMap(`Abundance of ${name}`, i + 1, '0,1')),
        bandMap('Root mean square of the residual', endmembers.length + 1),
      ],
    };
  },
};

/** Number of abundance maps in a report. */
const MAX_SHOWN_MAPS = 8;

function endmembersOf(library: Library, bands: AnalysedBand[]): FoundEndmember[] {
  return resampledSpectra(library, resampleLibrary(library, bands)).map(({ name, values }) => ({
    name,
    spectrum: [...values],
  }));
}
