/** Bands of a tile by the names that people know them by. */
import { isHyperspectral, nearestBand } from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import type { Expression } from './ast.js';
import { listBands, unknownBand } from './errors.js';
import { parseExpression } from './parser.js';
import { compileExpression, type Program } from './program.js';
import { SPECTRAL_INDICES } from './spectral-indices.js';

/** Group and number of a band, both from 0. */
export interface BandIndex {
  group: number;
  band: number;
}

/** Near infrared comes by two names, after the width of the band. */
const NIR_SYNONYMS: Record<string, string> = { nir: 'nir08', nir08: 'nir' };

const SPECTRAL_INDEX_EXPRESSIONS: Record<string, Expression> = Object.fromEntries(
  Object.entries(SPECTRAL_INDICES).map(
    ([
      name,
      {
        bands: [a, b],
      },
    ]) => [name, parseExpression(`(${a} - ${b}) / (${a} + ${b})`)],
  ),
);

/** What is no letter, digit or `_` is written as `_` in expressions. */
export const toIdentifier = (name: string) => name.replace(/\W/g, '_');

/** Every name of every band: its own, its common name, and `<group>_b<number from 1>`. The first of a name counts. */
function bandIndexByName(groups: GroupRecord[]): Map<string, BandIndex> {
  const places = new Map<string, BandIndex>();
  const add = (name: string | undefined, place: BandIndex) => {
    if (name !== undefined && !places.has(name)) places.set(name, place);
  };
  for (const [group, { bands }] of groups.entries())
    for (const [band, { name }] of bands.entries()) add(toIdentifier(name), { group, band });
  for (const [group, { name, bands }] of groups.entries()) {
    for (const [band, { commonName }] of bands.entries()) {
      add(commonName, { group, band });
      add(`${toIdentifier(name)}_b${band + 1}`, { group, band });
    }
  }
  return places;
}

/** The wavelength, nm, of a name such as `860nm` or `0.86um`; undefined for other names. */
export function parseWavelengthName(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([nu])m$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (unit === 'u' ? 1000 : 1);
}

/** Farther bands than this from a wavelength do not stand for it, nm. */
const WAVELENGTH_TOLERANCE_NM = 25;

/**
 * The name, among those of `bandIndexByName`, of the good band that is nearest to a wavelength such as `860nm` or `0.86um`; undefined for
 * other names, and where no band has a wavelength. Throws TW_IMAGERY_BAND if the nearest is too far.
 */
function bandAtWavelength(groups: GroupRecord[], text: string): string | undefined {
  const nanometres = parseWavelengthName(text);
  if (nanometres === undefined) return undefined;
  const bands = groups.flatMap(({ name, bands }) =>
    bands.map((band, b) => ({ ...band, place: `${toIdentifier(name)}_b${b + 1}` })),
  );
  const nearest = bands[nearestBand(bands, nanometres, Infinity)];
  if (nearest?.wavelength === undefined) return undefined;
  if (Math.abs(nearest.wavelength - nanometres) > WAVELENGTH_TOLERANCE_NM)
    throw unknownBand(text, `the nearest good band is ${nearest.name} at ${nearest.wavelength} nm`);
  return nearest.place;
}

/**
 * The name, among those of `bandIndexByName`, of band number n (from 1) of the first spectrum, for `b<n>`; undefined for other names, and
 * where there is no spectrum. In other products numbers are names of the sensor's own.
 */
function bandOfNumber(groups: GroupRecord[], text: string): string | undefined {
  const number = /^b([1-9]\d*)$/.exec(text)?.[1];
  const spectrum = groups.find(({ bands }) => isHyperspectral(bands));
  return number && spectrum && `${toIdentifier(spectrum.name)}_b${number}`;
}

/**
 * The name, among those of `places`, of the band that a name means: a wavelength, a number of a spectrum, or near infrared by its other
 * name if the tile lacks the first. Undefined if there is none.
 */
function bandNamed(places: Map<string, BandIndex>, groups: GroupRecord[], name: string): string | undefined {
  if (places.has(name)) return name;
  const found = bandAtWavelength(groups, name) ?? bandOfNumber(groups, name) ?? NIR_SYNONYMS[name];
  return found !== undefined && places.has(found) ? found : undefined;
}

/** Where a tile holds bands, in the order of their names, found as in expressions; undefined if it lacks one. */
export function findBands(groups: GroupRecord[], names: readonly string[]): BandIndex[] | undefined {
  const places = bandIndexByName(groups);
  const found = names.flatMap((name) => places.get(bandNamed(places, groups, name) ?? '') ?? []);
  return found.length === names.length ? found : undefined;
}

/** Expressions over the bands of tiles that have the same groups. */
export interface ResolvedBands {
  programs: Program[];
  /** The bands that the programs need, in the order in which they count them. */
  indices: BandIndex[];
  /** Bands that stand for others that are not there: near infrared by its other name. */
  substitutes: { asked: string; taken: string }[];
}

/** Finds the bands of expressions. Throws TW_IMAGERY_BAND, naming the bands that there are. */
export function resolveBands(expressions: Expression[], groups: GroupRecord[]): ResolvedBands {
  const places = bandIndexByName(groups);
  const used: string[] = [];
  const instead = new Map<string, string>();
  const bandOf = (name: string): number | Expression => {
    const found = bandNamed(places, groups, name);
    if (found === undefined) {
      if (Object.hasOwn(SPECTRAL_INDEX_EXPRESSIONS, name)) return SPECTRAL_INDEX_EXPRESSIONS[name];
      throw unknownBand(name, listBands([...places.keys()]));
    }
    if (found === NIR_SYNONYMS[name]) instead.set(name, found);
    const known = used.indexOf(found);
    return known >= 0 ? known : used.push(found) - 1;
  };
  const programs = expressions.map((expression) => compileExpression(expression, bandOf));
  return {
    programs,
    indices: used.map((name) => places.get(name)!),
    substitutes: [...instead].map(([asked, taken]) => ({ asked, taken })),
  };
}

/**
 * The band that is called so in these groups, however its name is written; band number n of a spectrum for a number alone; else an
 * expression. Throws TW_IMAGERY_EXPRESSION.
 */
export function parseBandOrExpression(text: string, groups: GroupRecord[]): Expression {
  const isBand = groups.some(({ bands }) =>
    bands.some(({ name, commonName }) => name === text || commonName === text),
  );
  const name = isBand ? toIdentifier(text) : bandOfNumber(groups, `b${text}`);
  return name === undefined ? parseExpression(text) : { kind: 'band', name, position: 0 };
}

/** Tiles of equal layouts have the same bands in the same places. */
export function bandLayoutKey(groups: GroupRecord[]): string {
  return groups
    .map(({ name, bands }) => `${name}:${bands.map((band) => `${band.name}=${band.commonName}`)}`)
    .join(' ');
}

/**
 * The bands of assets, by names for expressions. An asset is a band group or a band; without assets the first group is meant.
 * Throws TW_IMAGERY_BAND.
 */
export function bandsOfAssets(groups: GroupRecord[], assets: string[] | undefined): string[] {
  const places = bandIndexByName(groups);
  return (assets ?? [groups[0].name]).flatMap((asset) => {
    const group = groups.find(({ name }) => name === asset);
    if (group) return group.bands.map((_, i) => `${toIdentifier(asset)}_b${i + 1}`);
    const name = places.has(toIdentifier(asset))
      ? toIdentifier(asset)
      : (bandAtWavelength(groups, asset) ?? bandOfNumber(groups, asset) ?? '');
    if (!places.has(name))
      throw unknownBand(asset, listBands([...new Set([...groups.map((one) => one.name), ...places.keys()])]));
    return [name];
  });
}
