/** Converts wavelengths to nanometres. */
import { aliasTable } from '../raster-alias-table.js';

/** Nanometres in one unit, by the names that ENVI, GDAL and other tools write, in lower case. */
const NANOMETRES_PER_UNIT = aliasTable([
  [1, 'nanometers nanometer nanometres nanometre nm'],
  [1e3, 'micrometers micrometer micrometres micrometre microns micron um µm μm'],
  [1e6, 'millimeters millimeter millimetres millimetre mm'],
  [1e7, 'centimeters centimeter centimetres centimetre cm'],
  [1e9, 'meters meter metres metre m'],
  [0.1, 'angstroms angstrom å'],
]);

/** Units of other quantities than wavelength. */
const OTHER_QUANTITIES = new Set(['index', 'wavenumber', 'ghz', 'mhz']);

/** Range of optical instruments, nm. */
export const MIN_WAVELENGTH_NM = 100;
export const MAX_WAVELENGTH_NM = 100_000;

export interface Wavelengths {
  nanometres: number[];
  /** Nanometres in one unit of the file. The FWHM has the same unit. */
  factor: number;
  /** For the user: a guess about the units, or a remark that all wavelengths are equal. */
  warning?: string;
}

/**
 * Wavelengths of a file in nanometres. The unit is guessed from the values if it is missing, unknown or impossible (such as
 * light of 0.4 nm). Undefined if the values cannot be wavelengths.
 */
export function toNanometres(values: number[], unit: string | undefined): Wavelengths | undefined {
  const name = unit?.trim().toLowerCase() ?? '';
  const isIn = (factor: number) => values.every((value) => isWavelength(value * factor));
  if (OTHER_QUANTITIES.has(name)) return undefined;
  const known = Object.hasOwn(NANOMETRES_PER_UNIT, name) ? NANOMETRES_PER_UNIT[name] : undefined;
  if (known !== undefined && isIn(known)) return inNanometres(values, known);
  // Micrometres of optical instruments are below 30, nanometres above 200.
  const least = values.reduce((a, b) => Math.min(a, b), Infinity);
  const largest = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const guess = largest <= 30 ? 1e3 : 1;
  if (!isIn(guess)) return undefined;
  const said = name === '' || name === 'unknown' ? 'no unit' : `the unit "${unit!.trim().slice(0, 40)}"`;
  const warning = `wavelengths from ${least} to ${largest} with ${said} are treated as ${guess === 1 ? 'nanometres' : 'micrometres'}`;
  return inNanometres(values, guess, warning);
}

function inNanometres(values: readonly number[], factor: number, guess?: string): Wavelengths {
  const nanometres = values.map((value) => roundNanometres(value * factor));
  const [first] = nanometres;
  const isOne = nanometres.length > 1 && nanometres.every((value) => value === first);
  const warning = [guess ?? [], isOne ? `all ${nanometres.length} wavelengths are ${first} nm` : []].flat();
  return { nanometres, factor, ...(warning.length > 0 && { warning: warning.join('; ') }) };
}

/**
 * The FWHM of bands in nm, from values in the unit of their wavelengths. NaN stands for an unknown width. A width that is not
 * above 0, or not below twice the wavelength, is left out with an entry in `warnings`.
 */
export function toNanometreWidths(
  values: readonly number[],
  { nanometres, factor }: Wavelengths,
  warnings: string[],
): (number | undefined)[] {
  const widths = values.map((value, band) => {
    const width = roundNanometres(value * factor);
    return width > 0 && width < 2 * nanometres[band]! ? width : undefined;
  });
  const wrong = values.filter((value, band) => widths[band] === undefined && !Number.isNaN(value));
  if (wrong.length > 0)
    warnings.push(
      `the FWHM of ${wrong.length} of ${values.length} bands is left out, because it cannot be ${wrong[0]}`,
    );
  return widths;
}

export function isWavelength(nanometres: number): boolean {
  return nanometres >= MIN_WAVELENGTH_NM && nanometres <= MAX_WAVELENGTH_NM;
}

/** Removes the rounding error of a multiplication by 1,000. */
export function roundNanometres(nanometres: number): number {
  return Number(nanometres.toPrecision(9));
}
