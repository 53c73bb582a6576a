/** Wavelengths of bands in GDAL metadata items, in the forms that ENVI and EnMAP-Box write and read. */

import type { SpectralTags } from '../raster-types.js';
import { roundNanometres, toNanometres, toNanometreWidths } from './wavelength-metadata-units.js';

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
export type BandItems = ReadonlyMap<string, string>;

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
