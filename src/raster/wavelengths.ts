/** Wavelengths of bands: in nanometres, and in GDAL metadata items, in the forms that ENVI and EnMAP-Box write and read. */
import { aliasTable, type SpectralTags } from './raster.js';

/** Nanometres in one unit, by the names that ENVI, GDAL and other tools write, in lower case. */
const NANOMETRES_PER_UNIT = aliasTable([
  [1, 'nanometers nanometer nanometres nanometre nm'],
  [1e3, 'micrometers micrometer micrometres micrometre microns micron um µm μm'],
  [1e6, 'millimeters millimeter millimetres millimetre mm'],
  [1e7, 'centimeters centimeter centimetres centimetre cm'],
  [1e9, 'meters meter metres metre m'],
  [0.1, 'angstroms angstrom å'],
]);

/** Units of other quantities than wavelength: numbers of bands, wavenumbers, frequencies and energies. */
const OTHER_QUANTITIES =
  /^(index|wave ?numbers?|(1\/|per |inverse |reciprocal )(cm|centimet(er|re)s?)|cm ?\^?[-−]1|[kmgt]?hz|(kilo|mega|giga|tera)?hertz|m?ev|electron ?volts?)$/;

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
  if (OTHER_QUANTITIES.test(name)) return undefined;
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
function roundNanometres(nanometres: number): number {
  return Number(nanometres.toPrecision(9));
}

/** Instruments with fewer bands are not imaging spectrometers. */
const MIN_SPECTRUM_BANDS = 16;

/** True for the bands of an imaging spectrometer: many, each with its wavelength. */
export function isHyperspectral(bands: readonly SpectralTags[]): boolean {
  return bands.length >= MIN_SPECTRUM_BANDS && bands.every(({ wavelength }) => wavelength !== undefined);
}

/**
 * The index of the good band whose centre is nearest to a wavelength, at most `tolerance` away (both nm); -1 if there is none.
 * If detectors overlap and two bands are equally near, the one with the smaller FWHM wins.
 */
export function nearestBand(bands: readonly SpectralTags[], nanometres: number, tolerance: number): number {
  const far = ({ wavelength = Infinity }: SpectralTags) => Math.abs(wavelength - nanometres);
  let best = -1;
  for (const [i, band] of bands.entries()) {
    if (band.good === false || far(band) > tolerance) continue;
    const known = bands[best];
    const isNearer =
      !known ||
      far(band) < far(known) ||
      (far(band) === far(known) && (band.fwhm ?? Infinity) < (known.fwhm ?? Infinity));
    if (isNearer) best = i;
  }
  return best;
}

/** The spectral tags of an object that may have other properties. */
export function spectralTags({ wavelength, fwhm, good }: SpectralTags): SpectralTags {
  return {
    ...(wavelength !== undefined && { wavelength }),
    ...(fwhm !== undefined && { fwhm }),
    ...(good !== undefined && { good }),
  };
}

/** Items of a band by name. Items of the domain IMAGERY (GDAL 3.10 and later) are named `IMAGERY:name`. */
type BandItems = ReadonlyMap<string, string>;

/** Returns the tags of each band. Adds guesses to `warnings`. */
export function parseSpectralTags(
  bands: { items: BandItems; description: string | undefined }[],
  warnings: string[],
): SpectralTags[] {
  const tags: SpectralTags[] = bands.map(() => ({}));
  // From the most exact source to the least exact one: IMAGERY has three decimals of a micrometre.
  const found = [plainItems, imageryItems, descriptions].some((source) => {
    const values = bands.map(source);
    const known = values.flatMap((value, band) => (value ? [{ ...value, band }] : []));
    const [first] = known;
    const spectrum =
      first &&
      toNanometres(
        known.map(({ wavelength }) => wavelength),
        first.unit,
      );
    if (!spectrum) return false;
    if (spectrum.warning) warnings.push(spectrum.warning);
    const widths = toNanometreWidths(
      known.map(({ fwhm }) => fwhm),
      spectrum,
      warnings,
    );
    for (const [i, { band }] of known.entries()) {
      tags[band]!.wavelength = spectrum.nanometres[i]!;
      if (widths[i] !== undefined) tags[band]!.fwhm = widths[i];
    }
    return true;
  });
  if (found)
    for (const [band, { items }] of bands.entries()) if (items.get('bbl') === '0') tags[band]!.good = false;
  return tags;
}

type Source = (band: {
  items: BandItems;
  description: string | undefined;
}) => { wavelength: number; fwhm: number; unit: string | undefined } | undefined;

const plainItems: Source = ({ items }) => {
  const text = items.get('wavelength');
  if (!text || !Number.isFinite(Number(text))) return undefined;
  return { wavelength: Number(text), fwhm: Number(items.get('fwhm')), unit: items.get('wavelength_units') };
};

const imageryItems: Source = ({ items }) => {
  const text = items.get('IMAGERY:CENTRAL_WAVELENGTH_UM');
  if (!text || !Number.isFinite(Number(text))) return undefined;
  return { wavelength: Number(text), fwhm: Number(items.get('IMAGERY:FWHM_UM')), unit: 'um' };
};

/** For example "band 1 (418.24 Nanometers)". */
const descriptions: Source = ({ description }) => {
  const [, value, unit] = /\(\s*(\d+(?:\.\d+)?)\s*([A-Za-zµμ]+)\s*\)\s*$/.exec(description ?? '') ?? [];
  return value === undefined ? undefined : { wavelength: Number(value), fwhm: NaN, unit };
};

/** The items of a band, each with its domain; empty for a band without a wavelength. */
export function spectralMetadataItems(
  tags: SpectralTags,
): { name: string; value: string; domain?: string }[] {
  const { wavelength, fwhm, good } = tags;
  if (wavelength === undefined) return [];
  const micrometres = (nanometres: number) => String(roundNanometres(nanometres / 1000));
  return [
    { name: 'wavelength', value: String(wavelength) },
    { name: 'wavelength_units', value: 'Nanometers' },
    ...(fwhm === undefined ? [] : [{ name: 'fwhm', value: String(fwhm) }]),
    { name: 'bbl', value: good === false ? '0' : '1' },
    { name: 'CENTRAL_WAVELENGTH_UM', value: micrometres(wavelength), domain: 'IMAGERY' },
    ...(fwhm === undefined ? [] : [{ name: 'FWHM_UM', value: micrometres(fwhm), domain: 'IMAGERY' }]),
  ];
}
