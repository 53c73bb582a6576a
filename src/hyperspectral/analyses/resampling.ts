/** Spectra resampled to the bands of another sensor. */
import { listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import type { AnalysisInputs } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { sensorNeeded, sensorRange } from '../errors.js';
import { multiplyVector } from '../linear-algebra.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { bandMap, columns, htmlTable, type ReportMapStyle } from '../report.js';
import { responseWeights, SENSOR_NAMES, SENSORS, type SensorBand, type SensorName } from '../sensors.js';
import type { AnalysedBand } from '../tile-spectrum.js';
import { mapReflectanceTags } from '../wavelengths.js';

interface ResampleInputs extends AnalysisInputs {
  sensor?: SensorName;
  /** Bands of a sensor without a name. */
  sensorBands?: Omit<SensorBand, 'name'>[];
}

interface ResampleFit {
  /** Names of the sensor's bands that the collection does not cover. */
  uncovered: string[];
}

export interface ResampleResults extends MapResults, ResampleFit {
  /** The bands of the new tiles. */
  sensorBands: SensorBand[];
}

const MAX_BANDS = 500;

export const spectralResamplingProcess: MapAnalysis<ResampleInputs, ResampleFit> = {
  name: 'resample',
  title: 'Resampled spectra',
  description: `Spectra at the bands of another sensor (${SENSOR_NAMES.join(', ')}, or its centres and FWHM), with normal distributions as responses.`,
  properties: {
    sensor: { enum: SENSOR_NAMES },
    sensorBands: {
      type: 'array',
      items: objectOf({
        wavelength: { ...NUMBER, minimum: 100, maximum: 100_000, description: 'Centre, nm' },
        fwhm: { ...NUMBER, minimum: 1e-6, maximum: 10_000, description: 'nm' },
      }),
      minItems: 1,
      maxItems: MAX_BANDS,
      description: 'Bands of a sensor that has no name here; they are called b1, b2, ...',
    },
  },
  fit: objectOf({ uncovered: listOf(TEXT) }),
  check: ({ sensor, sensorBands }) => {
    if ((sensor === undefined) === (sensorBands === undefined)) throw sensorNeeded();
  },
  showsSpectra: true,
  run: async (analysed, inputs) => {
    const { covered, weights, uncovered } = resampling(inputs, analysed.bands);
    return {
      map: {
        method: { kind: 'linear', weights, centre: new Float64Array(analysed.bands.length) },
        bands: covered.map(({ name }) => name),
        tags: mapReflectanceTags(covered),
      },
      fit: { uncovered },
    };
  },
  conclude: (fit, inputs, bands, examples) => {
    const { covered, weights } = resampling(inputs, bands);
    const made = examples.map(({ name, values }) => ({ name, values: multiplyVector(weights, values) }));
    const { uncovered } = fit;
    return {
      summary: { ...fit, sensorBands: covered },
      facts: [
        ...(inputs.sensor ? [SENSORS[inputs.sensor].title] : []),
        `${covered.length} bands of the sensor`,
        ...(uncovered.length > 0 ? [`not covered: ${uncovered.join(', ')}`] : []),
      ],
      sections: [
        { title: 'Spectra', content: spectrumChart(bands, examples) },
        { title: 'Resampled spectra', content: spectrumChart(covered, made) },
        { title: 'Bands', content: bandTable(covered) },
      ],
      looks: [resampledRenderParams(covered)],
    };
  },
};

/** True colour if the sensor has red, green and blue bands, else the first band. */
function resampledRenderParams(bands: readonly SensorBand[]): ReportMapStyle {
  const tags = mapReflectanceTags(bands);
  const bidx = ['red', 'green', 'blue'].map(
    (name) => tags.findIndex(({ commonName }) => commonName === name) + 1,
  );
  if (!bidx.includes(0)) return { title: 'Red, green and blue', look: { bidx } };
  return bandMap(bands[0].name, 1);
}

function bandTable(bands: readonly SensorBand[]) {
  return htmlTable(
    columns(['band'], ['centre, nm', 'FWHM, nm']),
    bands.map(({ name, wavelength, fwhm }) => [name, `${wavelength}`, `${fwhm}`]),
  );
}

function sensorBandsOf({ sensor, sensorBands = [] }: ResampleInputs): SensorBand[] {
  if (sensor) return SENSORS[sensor].bands;
  return sensorBands.map((band, i) => ({ name: `b${i + 1}`, ...band }));
}

/**
 * The bands of the sensor that are covered, and names of the others. `weights`: one row for each covered band, one column for each band of
 * the collection. Throws TW_ANALYSIS_SENSOR_RANGE if no band is covered.
 */
function resampling(inputs: ResampleInputs, bands: readonly AnalysedBand[]) {
  const wavelengths = bands.map(({ wavelength }) => wavelength);
  const all = sensorBandsOf(inputs);
  const rows = all.map((band) => responseWeights(band, wavelengths));
  const covered = all.filter((_, i) => rows[i] !== undefined);
  if (covered.length === 0)
    throw sensorRange(inputs.sensor ?? 'the sensor', Math.min(...wavelengths), Math.max(...wavelengths));
  return {
    covered,
    weights: Float64Array.from(rows.flatMap((row) => (row ? [...row] : []))),
    uncovered: all.filter((_, i) => rows[i] === undefined).map(({ name }) => name),
  };
}
