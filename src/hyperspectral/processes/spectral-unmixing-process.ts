/** Abundances of endmembers. */
import { html } from '../../html/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import {
  collectionStatistics,
  type Endmember,
  findEndmembers,
  LON_LAT_SCHEMA,
} from '../collection-passes/index.js';
import { libraryOrCount } from '../errors.js';
import {
  type AnalysedCollection,
  type AnalysisInputs,
  DEFAULT_SEED,
  integer,
  SEED,
  selectBands,
} from '../jobs/index.js';
import { AbundanceSolver } from '../pixel-methods/index.js';
import { bandMap, columns, covarianceFacts, htmlTable, spectrumChart } from '../report/index.js';
import {
  checkLibrary,
  coveredBands,
  LIBRARY,
  type Library,
  libraryCsv,
  resampledSpectra,
  resampleLibrary,
} from '../spectral-library/index.js';
import type { MapAnalysis, MapResults } from '../spectral-maps/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';

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
