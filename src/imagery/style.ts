/** Resolves render parameters to a style, with defaults that fit the product. */

import { excerpt } from '../errors.js';
import {
  bandsOfAssets,
  type Expression,
  hasBands,
  parseExpressions,
  unknownBand,
} from '../expressions/index.js';
import type { GroupRecord, TileRecord } from '../storage/index.js';
import {
  type Algorithm,
  applyAlgorithm,
  outputPlaneCount,
  outputRange,
  parseAlgorithm,
} from './algorithms.js';
import { COLORMAPS, type Colormap, classColormap, namedColormap, parseColormap } from './colormaps.js';
import { BYTE_RANGE, parseColourFormula, renderRgba, type Style, type ValueRange } from './colours.js';
import { badRenderParameter } from './errors.js';
import { type RenderContext, type RenderedBands, renderTilePlanes } from './mosaic.js';
import type { ResamplingMethod } from './resample.js';
import { fullCellViewport } from './viewport.js';

/**
 * The bands of assets as expressions. An asset is a band group or a band; `bidx` selects among all their bands, from 1. The default is the
 * first group. Throws TW_IMAGERY_BAND and TW_IMAGERY_LOOK.
 */
function assetBands(groups: GroupRecord[], assets: string[] | undefined, bidx?: number[]): Expression[] {
  const names = bandsOfAssets(groups, assets);
  const selected = bidx?.map((number) => {
    const name = names[number - 1];
    if (name === undefined)
      throw badRenderParameter('bidx', `${number} is not among the ${names.length} bands`);
    return name;
  });
  return (selected ?? names).map((name) => ({ kind: 'band', name, position: 0 }));
}

/** Parameters of maps, with titiler's names. Lists are repeated parameters. */
export interface RenderParams {
  /** Band groups or bands. Default: the first group. */
  assets?: string[];
  /** Numbers among all bands of the assets, from 1. */
  bidx?: number[];
  /** One expression, or several with ";" between them: three for red, green and blue, or as many as the algorithm needs. */
  expression?: string;
  /** Name of an algorithm that computes planes from the bands. */
  algorithm?: string;
  /** A JSON object. */
  algorithm_params?: string;
  /** "low,high": one range for all planes, or one for each plane. */
  rescale?: string[];
  /** Operations on the colours. */
  color_formula?: string;
  colormap_name?: string;
  /** Colours of values or intervals, as JSON. */
  colormap?: string;
  resampling?: ResamplingMethod;
  /** Replaces `resampling` if the cells are not in the projection of the map. */
  reproject?: ResamplingMethod;
  nodata?: string;
  /** False for images without opacity. */
  return_mask?: boolean;
}

export interface RenderStyle extends RenderedBands, Style {
  algorithm?: Algorithm | undefined;
  /** False for images without opacity. */
  opacity: boolean;
}

/** Approximate memory of a style, bytes. */
export function renderStyleBytes(style: RenderStyle): number {
  const plain = (_: string, value: unknown) =>
    value instanceof Map || value instanceof Uint8Array ? [...value] : value;
  return 1000 + 2 * JSON.stringify(style, plain).length;
}

/** Range of reflectance in true colour. Land is below its upper end; clouds may be saturated. */
const TRUE_COLOUR_RANGE: ValueRange = [0, 0.3];
/** Values with a smaller scale are calibrated; calibrated visible bands are reflectance. */
const MAX_CALIBRATED_SCALE = 0.01;

/**
 * Resolves render parameters. Defaults depend on `reference`, a tile of the collection: true colour if it has red, green and blue bands,
 * else the first band. Throws TW_IMAGERY_EXPRESSION, TW_IMAGERY_BAND and TW_IMAGERY_LOOK.
 */
export async function resolveRenderStyle(
  source: RenderContext,
  reference: TileRecord,
  params: RenderParams,
): Promise<RenderStyle> {
  const expressions = expressionsOf(reference.groups, params);
  const algorithm = algorithmOf(params, expressions.length);
  const planes = algorithm ? outputPlaneCount(algorithm) : expressions.length;
  if (planes !== 1 && planes !== 3) {
    throw params.expression === undefined
      ? badRenderParameter(
          'assets',
          `give ${planes} bands, and an image has 1 or 3: choose with bidx, or give an expression`,
        )
      : badRenderParameter(
          'expression',
          `gives ${planes} bands, and an image has 1 or 3: give 1 or 3 expressions with ; between them`,
        );
  }
  const subject: RenderedBands = {
    expressions,
    resampling: params.resampling ?? 'nearest',
    nodata: params.nodata === undefined ? undefined : nodataOf(params.nodata),
  };
  const { color_formula } = params;
  const formula = color_formula === undefined ? undefined : parseColourFormula(color_formula, planes);
  const colouring = colouringOf(params, planes);
  const style = { ...subject, algorithm, colouring, formula, opacity: params.return_mask !== false };
  if (params.rescale) return { ...style, ranges: rangesOf(params.rescale, planes) };
  if (params.colormap !== undefined) {
    // A formula needs values from 0 to 255, and values without `rescale` have any range.
    if (formula)
      throw badRenderParameter('color_formula', 'needs rescale if colormap gives colours of values');
    return style;
  }
  const known = algorithm ? outputRange(algorithm) : defaultRange(params, reference.groups, planes);
  if (known) return { ...style, ranges: Array.from({ length: planes }, () => known) };
  const values = await valuesOf(source, reference, subject, algorithm);
  const legend =
    colouring || formula || algorithm ? undefined : classColormap(reference, expressions, values[0]);
  return legend ? { ...style, colouring: legend } : { ...style, ranges: values.map(percentileRange) };
}

function algorithmOf({ algorithm, algorithm_params }: RenderParams, bands: number): Algorithm | undefined {
  if (algorithm !== undefined) return parseAlgorithm(algorithm, algorithm_params, bands);
  if (algorithm_params !== undefined)
    throw badRenderParameter('algorithm_params', 'is given without algorithm');
  return undefined;
}

/** Value range and colours of an image of one measured band. */
export interface ColourScale {
  /** Values up to this have the first colour. */
  low: number;
  /** Values from this on have the last colour. */
  high: number;
  /** `#rrggbb` at equal distances from low to high. */
  colours: string[];
}

/** Every 15th of the 256 colours of a ramp, including the first and the last. */
const LEGEND_STOPS = Array.from({ length: 18 }, (_, i) => 15 * i);

/** Returns undefined for three bands, codes, or colours of single values. */
export function colourScaleOf({ ranges, colouring, formula }: RenderStyle): ColourScale | undefined {
  if (ranges?.length !== 1 || (colouring && colouring.kind !== 'ramp')) return undefined;
  const [[low, high]] = ranges;
  const pixels = renderRgba([Float64Array.from(LEGEND_STOPS)], { ranges: [[0, 255]], colouring, formula });
  const colours = LEGEND_STOPS.map((_, i) => pixels.subarray(4 * i, 4 * i + 3));
  return { low, high, colours: colours.map((rgb) => `#${Buffer.from(rgb).toString('hex')}`) };
}

/** True if a tile has the bands of an image. Throws TW_IMAGERY_EXPRESSION and TW_IMAGERY_LOOK. */
export function hasRenderedBands({ groups }: TileRecord, params: RenderParams): boolean {
  try {
    return hasBands(expressionsOf(groups, params), groups);
  } catch (error) {
    // An asset that the tile lacks.
    if (unknownBand.is(error)) return false;
    throw error;
  }
}

const isDefault = ({ expression, assets, bidx }: RenderParams) => !expression && !assets && !bidx;

const TRUE_COLOUR_BANDS = ['red', 'green', 'blue'];

function expressionsOf(groups: GroupRecord[], params: RenderParams): Expression[] {
  if (params.expression !== undefined) {
    if (params.assets || params.bidx)
      throw badRenderParameter(
        'expression',
        'cannot be combined with assets and bidx: leave them out, and name bands as group_b1',
      );
    return parseExpressions(params.expression.split(';'));
  }
  if (!isDefault(params)) return assetBands(groups, params.assets, params.bidx);
  const names = new Set(groups.flatMap(({ bands }) => bands.map(({ commonName }) => commonName)));
  return TRUE_COLOUR_BANDS.every((colour) => names.has(colour))
    ? assetBands(groups, TRUE_COLOUR_BANDS)
    : assetBands(groups, undefined, [1]);
}

/** The known value range of red, green and blue, if these are shown by default. */
function defaultRange(params: RenderParams, groups: GroupRecord[], planes: number): ValueRange | undefined {
  if (!isDefault(params) || planes !== 3) return undefined;
  const group = groups.find(({ bands }) => bands.some(({ commonName }) => commonName === 'red'))!;
  const { scale } = group.bands.find(({ commonName }) => commonName === 'red')!;
  if (scale <= MAX_CALIBRATED_SCALE) return TRUE_COLOUR_RANGE;
  return group.dataType === 'uint8' && scale === 1 ? BYTE_RANGE : undefined;
}

function colouringOf(
  { colormap_name: name, colormap: custom }: RenderParams,
  planes: number,
): Colormap | undefined {
  if (name === undefined && custom === undefined) return undefined;
  if (name !== undefined && custom !== undefined)
    throw badRenderParameter('colormap', 'cannot be given together with colormap_name');
  const colouring = name === undefined ? parseColormap(custom!) : colormapNamed(name);
  if (planes !== 1)
    throw badRenderParameter(
      name === undefined ? 'colormap' : 'colormap_name',
      `is for one band, not for ${planes}`,
    );
  return colouring;
}

function colormapNamed(name: string): Colormap {
  const colours = namedColormap(name);
  if (!colours) {
    const known = `there are ${COLORMAPS.join(', ')}, each also reversed with the suffix _r`;
    throw badRenderParameter('colormap_name', `${excerpt(name)} is not known: ${known}`);
  }
  return { kind: 'ramp', colours };
}

const DECIMAL_NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

function rangesOf(given: string[], planes: number): ValueRange[] {
  const ranges = given.map((text): ValueRange => {
    const parts = text.split(',');
    const [low, high] = parts.map((part) => (DECIMAL_NUMBER.test(part) ? Number(part) : NaN));
    if (parts.length !== 2 || !Number.isFinite(low) || !Number.isFinite(high) || low >= high)
      throw badRenderParameter('rescale', `"${text}" is not low,high with low below high`);
    return [low, high];
  });
  if (ranges.length !== 1 && ranges.length !== planes)
    throw badRenderParameter(
      'rescale',
      `is given ${ranges.length} times for ${planes} bands: give one for all, or one for each`,
    );
  return Array.from({ length: planes }, (_, i) => ranges[i] ?? ranges[0]);
}

function nodataOf(text: string): number {
  if (text.trim().toLowerCase() === 'nan') return NaN;
  if (!DECIMAL_NUMBER.test(text)) throw badRenderParameter('nodata', `"${text}" is neither a number nor nan`);
  return Number(text);
}

/** Longest side of the image whose values determine the default range. */
const SAMPLE_SIDE_PX = 128;

/** Finite values of each plane of a tile in ascending order, after the algorithm if there is one. */
async function valuesOf(
  source: RenderContext,
  tile: TileRecord,
  subject: RenderedBands,
  algorithm: Algorithm | undefined,
): Promise<Float64Array[]> {
  const [group] = tile.groups;
  const width = Math.min(group.width, SAMPLE_SIDE_PX);
  const height = Math.min(group.height, SAMPLE_SIDE_PX);
  const planes = await renderTilePlanes(source, tile, fullCellViewport(width, height), subject);
  // Algorithms without a fixed range work pixel by pixel, so the pixel size does not matter.
  const made = algorithm
    ? applyAlgorithm(algorithm, { width, height, planes }, { x: 1, y: 1 }, 0)
    : { planes };
  return made.planes.map((plane) => plane.filter((value) => !Number.isNaN(value)).sort());
}

/** The 2nd to the 98th percentile of sorted values. */
function percentileRange(sorted: Float64Array): ValueRange {
  if (sorted.length === 0) return [0, 1];
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.02), at(0.98)];
  if (low < high) return [low, high];
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  return least < most ? [least, most] : [least, least + 1];
}
