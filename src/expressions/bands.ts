/** Finds the bands of a tile by name, common name, wavelength or number, and those of spectral indices. */
import { isHyperspectral, nearestBand } from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import { listBands, unknownBand } from './errors.js';
import { type Expression, parseExpression } from './parser.js';
import { compileExpression, type Program } from './program.js';

/** A spectral index of two broad bands. */
interface NormalisedDifferenceIndex {
  /** Common names (STAC `eo`) of a and b in the normalised difference (a - b) / (a + b). */
  bands: readonly [a: string, b: string];
  /** Typical range over land, for the colours of a map. */
  range: readonly [low: number, high: number];
}

/**
 * NDVI: Rouse et al. 1974. NDMI, from the near infrared and the short-wave infrared at 1.6 um: Hardisky et al. 1983, Wilson and Sader 2002.
 * For Sentinel-2 these bands are B8A (`nir08`) and B11. Both have pixels of 20 m, and B8A is as narrow as the near infrared of Landsat 8
 * and avoids the water vapour absorption within the broad B08.
 */
export const SPECTRAL_INDICES = {
  ndvi: { bands: ['nir', 'red'], range: [0, 1] },
  ndmi: { bands: ['nir08', 'swir16'], range: [-0.5, 0.5] },
} as const satisfies Record<string, NormalisedDifferenceIndex>;

/** Group and number of a band, both from 0. */
export interface BandIndex {
  group: number;
  band: number;
}

/** The near infrared has two common names, depending on the width of the band. */
const NIR_SYNONYMS: Record<string, string> = { nir: 'nir08', nir08: 'nir' };

const SPECTRAL_INDEX_EXPRESSIONS: Record<string, Expression> = Object.fromEntries(
  Object.entries(SPECTRAL_INDICES).map(([name, { bands }]) => {
    const [a, b] = bands;
    return [name, parseExpression(`(${a} - ${b}) / (${a} + ${b})`)];
  }),
);

/** In expressions, characters other than letters, digits and `_` are written as `_`. */
export const toIdentifier = (name: string) => name.replace(/\W/g, '_');

/** All names of all bands: name, common name, and `<group>_b<number from 1>`. If a name occurs several times, the first band counts. */
function bandIndexByName(groups: GroupRecord[]): Map<string, BandIndex> {
  const indices = new Map<string, BandIndex>();
  const add = (name: string | undefined, index: BandIndex) => {
    if (name !== undefined && !indices.has(name)) indices.set(name, index);
  };
  for (const [group, { bands }] of groups.entries())
    for (const [band, { name }] of bands.entries()) add(toIdentifier(name), { group, band });
  for (const [group, { name, bands }] of groups.entries()) {
    for (const [band, { commonName }] of bands.entries()) {
      add(commonName, { group, band });
      add(`${toIdentifier(name)}_b${band + 1}`, { group, band });
    }
  }
  return indices;
}

/** The wavelength of a name such as `860nm` or `0.86um`, nm; undefined for other names. */
export function parseWavelengthName(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([nu])m$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (unit === 'u' ? 1000 : 1);
}

/** Largest distance of a band from the wavelength that it represents. */
const WAVELENGTH_TOLERANCE_NM = 25;

/**
 * The name in `bandIndexByName` of the good band nearest to a wavelength such as `860nm` or `0.86um`; undefined for other names, and if no
 * band has a wavelength. Throws TW_IMAGERY_BAND if the nearest band is too far.
 */
function bandAtWavelength(groups: GroupRecord[], text: string): string | undefined {
  const nanometres = parseWavelengthName(text);
  if (nanometres === undefined) return undefined;
  const bands = groups.flatMap(({ name, bands }) =>
    bands.map((band, b) => ({ ...band, identifier: `${toIdentifier(name)}_b${b + 1}` })),
  );
  const nearest = bands[nearestBand(bands, nanometres, Infinity)];
  if (nearest?.wavelength === undefined) return undefined;
  if (Math.abs(nearest.wavelength - nanometres) > WAVELENGTH_TOLERANCE_NM)
    throw unknownBand(text, `the nearest good band is ${nearest.name} at ${nearest.wavelength} nm`);
  return nearest.identifier;
}

/**
 * The name in `bandIndexByName` of band number n (from 1) of the first spectrum, for `b<n>`; undefined for other names, and if there is no
 * spectrum. In other products, numbers are the sensor's own band names.
 */
function bandOfNumber(groups: GroupRecord[], text: string): string | undefined {
  const number = /^b([1-9]\d*)$/.exec(text)?.[1];
  const spectrum = groups.find(({ bands }) => isHyperspectral(bands));
  return number && spectrum && `${toIdentifier(spectrum.name)}_b${number}`;
}

/**
 * The name in `indices` of the band for a name: the name itself, a wavelength, a number of a spectrum, or the other name of the near
 * infrared. Undefined if there is no band.
 */
function bandNamed(indices: Map<string, BandIndex>, groups: GroupRecord[], name: string): string | undefined {
  if (indices.has(name)) return name;
  const found = bandAtWavelength(groups, name) ?? bandOfNumber(groups, name) ?? NIR_SYNONYMS[name];
  return found !== undefined && indices.has(found) ? found : undefined;
}

/** The bands of a tile by names as in expressions, in the order of the names; undefined if one is missing. */
export function findBands(groups: GroupRecord[], names: readonly string[]): BandIndex[] | undefined {
  const indices = bandIndexByName(groups);
  const found = names.flatMap((name) => indices.get(bandNamed(indices, groups, name) ?? '') ?? []);
  return found.length === names.length ? found : undefined;
}

/** Expressions over the bands of tiles that have the same groups. */
export interface ResolvedBands {
  programs: Program[];
  /** The bands of the programs, in the order of their numbers. */
  indices: BandIndex[];
  /** Bands that replace missing bands: the near infrared by its other name. */
  substitutes: { asked: string; taken: string }[];
}

/** Finds the bands of expressions. Throws TW_IMAGERY_BAND, which lists the existing bands. */
export function resolveBands(expressions: Expression[], groups: GroupRecord[]): ResolvedBands {
  const indices = bandIndexByName(groups);
  const used: string[] = [];
  const substitutes = new Map<string, string>();
  const bandOf = (name: string): number | Expression => {
    const found = bandNamed(indices, groups, name);
    if (found === undefined) {
      if (Object.hasOwn(SPECTRAL_INDEX_EXPRESSIONS, name)) return SPECTRAL_INDEX_EXPRESSIONS[name];
      throw unknownBand(name, listBands([...indices.keys()]));
    }
    if (found === NIR_SYNONYMS[name]) substitutes.set(name, found);
    const known = used.indexOf(found);
    return known >= 0 ? known : used.push(found) - 1;
  };
  const programs = expressions.map((expression) => compileExpression(expression, bandOf));
  return {
    programs,
    indices: used.map((name) => indices.get(name)!),
    substitutes: [...substitutes].map(([asked, taken]) => ({ asked, taken })),
  };
}

/** True if these groups have all bands of the expressions. */
export function hasBands(expressions: Expression[], groups: GroupRecord[]): boolean {
  try {
    resolveBands(expressions, groups);
    return true;
  } catch (error) {
    if (unknownBand.is(error)) return false;
    throw error;
  }
}

/**
 * Parses a band or an expression. A text that is a name or common name of a band in these groups denotes that band, with any characters; a
 * number denotes a band of a spectrum. Throws TW_IMAGERY_EXPRESSION.
 */
export function parseBandOrExpression(text: string, groups: GroupRecord[]): Expression {
  const isBand = groups.some(({ bands }) =>
    bands.some(({ name, commonName }) => name === text || commonName === text),
  );
  const name = isBand ? toIdentifier(text) : bandOfNumber(groups, `b${text}`);
  return name === undefined ? parseExpression(text) : { kind: 'band', name, position: 0 };
}

/** Tiles with equal keys have the same bands in the same order. */
export function bandLayoutKey(groups: GroupRecord[]): string {
  return groups
    .map(({ name, bands }) => `${name}:${bands.map((band) => `${band.name}=${band.commonName}`)}`)
    .join(' ');
}

/**
 * The bands of assets, by names for expressions. An asset is a band group or a band; the default is the first group. Throws
 * TW_IMAGERY_BAND.
 */
export function bandsOfAssets(groups: GroupRecord[], assets: string[] | undefined): string[] {
  const indices = bandIndexByName(groups);
  return (assets ?? [groups[0].name]).flatMap((asset) => {
    const group = groups.find(({ name }) => name === asset);
    if (group) return group.bands.map((_, i) => `${toIdentifier(asset)}_b${i + 1}`);
    const name = indices.has(toIdentifier(asset))
      ? toIdentifier(asset)
      : (bandAtWavelength(groups, asset) ?? bandOfNumber(groups, asset) ?? '');
    if (!indices.has(name))
      throw unknownBand(
        asset,
        listBands([...new Set([...groups.map((one) => one.name), ...indices.keys()])]),
      );
    return [name];
  });
}
