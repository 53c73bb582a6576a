/** How planes of values become colours: asked for by parameters, or a quick look that fits the product. */
import type { GroupRecord, TileRecord } from '../storage/index.js';
import { assetBands } from './bands.js';
import { wholeCell } from './cell-view.js';
import { COLORMAPS, colormap } from './colormaps.js';
import { badLook } from './errors.js';
import type { Expression } from './expression/ast.js';
import { parseExpression } from './expression/parse.js';
import { legendOf } from './legends.js';
import { planesOf, type Source, type Subject } from './mosaic.js';

/** Parameters of maps, with the names that titiler gives them. Lists come as repeated parameters. */
export interface LookParams {
  /** Band groups or bands; the first group where absent. */
  assets?: string[];
  /** Numbers among all bands of the assets, from 1. */
  bidx?: number[];
  /** One expression, or three for red, green and blue with ";" between them. */
  expression?: string;
  /** "low,high": one for all planes, or one for each. */
  rescale?: string[];
  colormap_name?: string;
  resampling?: 'nearest' | 'bilinear';
  nodata?: string;
}

type Range = readonly [low: number, high: number];

export interface Look extends Subject {
  /** Values from low to high become 0 to 255, for each plane; ignored where there is a legend. */
  ranges: Range[];
  /** 256 colours for a single plane. */
  ramp?: Uint8Array | undefined;
  /** Colours of codes. */
  legend?: Map<number, number> | undefined;
}

/** Reflectance in true colour: land is below, clouds may burn out. */
const REFLECTANCE: Range = [0, 0.3];
/** Numbers with a smaller factor are calibrated, and in the visible that means reflectance. */
const LARGEST_SCALE = 0.01;
const BYTES: Range = [0, 255];

/**
 * The look that parameters ask for. What they leave open is chosen by `reference`, a tile of the collection: true colour
 * where there is red, green and blue, else the first band. Throws TW_IMAGERY_EXPRESSION, _BAND, _LOOK.
 */
export async function lookOf(source: Source, reference: TileRecord, params: LookParams): Promise<Look> {
  const expressions = expressionsOf(reference.groups, params);
  if (expressions.length !== 1 && expressions.length !== 3) {
    const advice = 'a picture has 1 or 3: choose with bidx, or give an expression';
    throw badLook('assets', `give ${expressions.length} bands; ${advice}`);
  }
  const subject: Subject = {
    expressions,
    resampling: params.resampling ?? 'nearest',
    nodata: params.nodata === undefined ? undefined : nodataOf(params.nodata),
  };
  const ramp = rampOf(params.colormap_name, expressions.length);
  if (params.rescale) return { ...subject, ramp, ranges: rangesOf(params.rescale, expressions.length) };
  const trueColour = isDefault(params) && expressions.length === 3;
  const known = trueColour ? visibleRange(reference.groups) : undefined;
  if (known) return { ...subject, ranges: [known, known, known] };
  const values = await valuesOf(source, reference, subject);
  const legend = ramp ? undefined : legendOf(reference, expressions, values[0]);
  return { ...subject, ramp, legend, ranges: values.map(middleOf) };
}

/** What the colours of a picture of one measured band stand for. */
export interface ColourScale {
  /** Values up to this have the first colour. */
  low: number;
  /** Values from this on have the last one. */
  high: number;
  /** `#rrggbb` at equal distances from low to high. */
  colours: string[];
}

/** Every 15th of the 256 colours of a ramp: its first and its last too. */
const SHOWN_COLOURS = Array.from({ length: 18 }, (_, i) => 15 * i);

/** Undefined where there are three bands, or codes. */
export function colourScaleOf({ ranges, ramp, legend }: Look): ColourScale | undefined {
  if (legend || ranges.length !== 1) return undefined;
  const [[low, high]] = ranges;
  const colours = SHOWN_COLOURS.map((i) => [0, 1, 2].map((channel) => (ramp ? ramp[3 * i + channel] : i)));
  return { low, high, colours: colours.map((rgb) => `#${Buffer.from(rgb).toString('hex')}`) };
}

const isDefault = ({ expression, assets, bidx }: LookParams) => !expression && !assets && !bidx;

const COLOURS = ['red', 'green', 'blue'];

function expressionsOf(groups: GroupRecord[], params: LookParams): Expression[] {
  if (params.expression !== undefined) {
    if (params.assets || params.bidx)
      throw badLook('expression', 'stands for itself: leave out assets and bidx, and name bands as group_b1');
    return params.expression.split(';').map(parseExpression);
  }
  if (!isDefault(params)) return assetBands(groups, params.assets, params.bidx);
  const names = new Set(groups.flatMap(({ bands }) => bands.map(({ commonName }) => commonName)));
  return COLOURS.every((colour) => names.has(colour))
    ? assetBands(groups, COLOURS)
    : assetBands(groups, undefined, [1]);
}

/** What the numbers of red, green and blue are known to range over. */
function visibleRange(groups: GroupRecord[]): Range | undefined {
  const group = groups.find(({ bands }) => bands.some(({ commonName }) => commonName === 'red'))!;
  const { scale } = group.bands.find(({ commonName }) => commonName === 'red')!;
  if (scale <= LARGEST_SCALE) return REFLECTANCE;
  return group.dataType === 'uint8' && scale === 1 ? BYTES : undefined;
}

function rampOf(name: string | undefined, planes: number): Uint8Array | undefined {
  if (name === undefined) return undefined;
  const ramp = colormap(name.toLowerCase());
  if (!ramp) throw badLook('colormap_name', `"${name}" is not known: there are ${COLORMAPS.join(', ')}`);
  if (planes !== 1) throw badLook('colormap_name', `is for one band, not for ${planes}`);
  return ramp;
}

const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

function rangesOf(given: string[], planes: number): Range[] {
  const ranges = given.map((text): Range => {
    const parts = text.split(',');
    const [low, high] = parts.map((part) => (NUMBER.test(part) ? Number(part) : NaN));
    if (parts.length !== 2 || !Number.isFinite(low) || !Number.isFinite(high) || low >= high)
      throw badLook('rescale', `"${text}" is not low,high with low below high`);
    return [low, high];
  });
  if (ranges.length !== 1 && ranges.length !== planes)
    throw badLook(
      'rescale',
      `is given ${ranges.length} times for ${planes} bands: give one for all, or one for each`,
    );
  return Array.from({ length: planes }, (_, i) => ranges[i] ?? ranges[0]);
}

function nodataOf(text: string): number {
  if (text.trim().toLowerCase() === 'nan') return NaN;
  if (!NUMBER.test(text)) throw badLook('nodata', `"${text}" is neither a number nor nan`);
  return Number(text);
}

/** So many pixels of a tile, at most, tell what range its values have. */
const SAMPLE_SIDE = 128;

/** Finite values of each plane in a tile. */
async function valuesOf(source: Source, tile: TileRecord, subject: Subject): Promise<Float64Array[]> {
  const [{ width, height }] = tile.groups;
  const view = wholeCell(Math.min(width, SAMPLE_SIDE), Math.min(height, SAMPLE_SIDE));
  const planes = await planesOf(source, tile, view, subject);
  return planes.map((plane) => plane.filter((value) => !Number.isNaN(value)).sort());
}

/** From the 2nd to the 98th percentile of sorted values. */
function middleOf(sorted: Float64Array): Range {
  if (sorted.length === 0) return [0, 1];
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.02), at(0.98)];
  if (low < high) return [low, high];
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  return least < most ? [least, most] : [least, least + 1];
}
