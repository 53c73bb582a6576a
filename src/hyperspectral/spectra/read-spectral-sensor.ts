/** Reads the bands of a sensor from a CSV file of centres and FWHM. */
import { toNanometres } from '../../raster/index.js';
import { badSensorFile } from '../errors.js';
import { readSmallText, unitInHeading } from './read-wavelength-table.js';
import type { SensorBand } from './spectral-response.js';

/** Sensors have at most thousands of bands of some bytes each. */
const MAX_FILE_BYTES = 10e6;

/**
 * Reads one line per band: centre, FWHM, in nm. `warning`: a guess about the unit, for the user. The first line may be a heading, which may
 * name the unit of both, as in `centre (um),fwhm`. Throws TW_ANALYSIS_SENSOR_FILE.
 */
export async function readSensor(
  path: string,
): Promise<{ bands: Omit<SensorBand, 'name'>[]; warning?: string }> {
  const text = await readSmallText(path, MAX_FILE_BYTES, badSensorFile);
  const lines = text
    .split(/\r?\n/)
    .map((line, i) => ({ line, number: i + 1 }))
    .filter(({ line }) => line.trim() !== '');
  const isHeading = Number.isNaN(Number(lines[0]?.line.split(',')[0]));
  const unit = isHeading ? unitInHeading(lines[0]?.line ?? '') : undefined;
  const rows = lines.slice(isHeading ? 1 : 0).map(({ line, number }) => {
    const [centre, fwhm, ...more] = line.split(',').map((cell) => (cell.trim() === '' ? NaN : Number(cell)));
    if (more.length > 0 || !(centre > 0) || !(fwhm > 0))
      throw badSensorFile(path, `line ${number} does not contain a centre and a FWHM above 0`);
    return { centre, fwhm };
  });
  const found =
    rows.length > 0 &&
    toNanometres(
      rows.map(({ centre }) => centre),
      unit,
    );
  if (!found) throw badSensorFile(path, 'its first column does not contain wavelengths');
  const { nanometres, factor, warning } = found;
  const isGuess = unit !== undefined || factor !== 1;
  return {
    bands: nanometres.map((wavelength, i) => ({
      wavelength,
      fwhm: Number((rows[i].fwhm * factor).toPrecision(9)),
    })),
    ...(isGuess && warning !== undefined && { warning }),
  };
}
