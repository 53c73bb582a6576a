/**
 * Colormaps, which give each value of a single plane a colour: those of Matplotlib and rio-tiler by rio-tiler's names (`colormap-table.ts`
 * lists their origins), custom ones, and the colours of codes. A colour is a number 0xRRGGBBAA; its last byte is opacity.
 */
import { inflateSync } from 'node:zlib';
import { excerpt, messageOf } from '../errors.js';
import { type Expression, toIdentifier } from '../expressions/index.js';
import type { ColourTable } from '../raster/index.js';
import type { TileRecord } from '../storage/index.js';
import { parseJson } from '../utils/json-text.js';
import { firstIndex } from '../utils/sorted.js';
import { NAMES, STEPS } from './colormap-table.js';
import { badRenderParameter } from './errors.js';

const COLORMAP_SIZE = 256;
const OPAQUE = 255;
const REVERSED_SUFFIX = '_r';

/** Names in lower case, sorted. With the suffix `_r` the order of the colours is reversed. */
export const COLORMAPS: readonly string[] = NAMES.split(' ');

let inflatedSteps: Buffer | undefined;

/** Returns 256 colours of 4 bytes (red, green, blue, opacity); undefined for an unknown name. Case does not matter. */
export function namedColormap(name: string): Uint8Array | undefined {
  const known = name.toLowerCase();
  const reversed = known.endsWith(REVERSED_SUFFIX);
  const number = COLORMAPS.indexOf(reversed ? known.slice(0, -REVERSED_SUFFIX.length) : known);
  if (number < 0) return undefined;
  inflatedSteps ??= inflateSync(Buffer.from(STEPS, 'base64'));
  const colours = new Uint8Array(4 * COLORMAP_SIZE).fill(OPAQUE);
  for (let channel = 0; channel < 3; channel++) {
    let value = 0;
    for (let i = 0; i < COLORMAP_SIZE; i++) {
      value = (value + inflatedSteps[(3 * number + channel) * COLORMAP_SIZE + i]) & 255;
      colours[4 * (reversed ? COLORMAP_SIZE - 1 - i : i) + channel] = value;
    }
  }
  return colours;
}

export type Colormap =
  /** 256 colours of 4 bytes for the integers from 0 to 255; other values have no colour. */
  | { kind: 'ramp'; colours: Uint8Array }
  /** Colours of exact values; other values have no colour. */
  | { kind: 'values'; colours: Map<number, number> }
  /** Values in [`bounds[i]`, `bounds[i + 1]`) have `colours[i]`; undefined means no colour. */
  | { kind: 'intervals'; bounds: number[]; colours: (number | undefined)[] };

/** Returns a function from a value to its colour, 0 (transparent) if it has no colour. */
export function colormapLookup(colouring: Colormap): (value: number) => number {
  switch (colouring.kind) {
    case 'ramp': {
      const { colours } = colouring;
      const view = new DataView(colours.buffer, colours.byteOffset, colours.byteLength);
      return (value) => (value > -1 && value < 256 ? view.getUint32(4 * Math.trunc(value)) : 0);
    }
    case 'values': {
      const { colours } = colouring;
      return (value) => colours.get(value) ?? 0;
    }
    case 'intervals': {
      const { bounds, colours } = colouring;
      return (value) => colours[firstIndex(bounds.length, (i) => !(bounds[i] <= value)) - 1] ?? 0;
    }
  }
}

/** The colour 0xRRGGBB without transparency. */
const opaque = (rgb: number): number => ((rgb << 8) | 255) >>> 0;

const MAX_COLORMAP_LENGTH = 16_384;
const MAX_COLORMAP_ENTRIES = 1024;

/**
 * Parses a custom colormap, titiler's parameter `colormap`: `{"value": colour, ...}` or `[[[from, to], colour], ...]`. A colour is `#RGB`,
 * `#RGBA`, `#RRGGBB`, `#RRGGBBAA`, or a list of 3 or 4 numbers from 0 to 255. Intervals include `from` and not `to`; if they overlap, the
 * last one counts. As in rio-tiler, values are truncated to integers if the keys of an object are exactly 0 to 255. Throws TW_IMAGERY_LOOK.
 */
export function parseColormap(text: string): Colormap {
  if (text.length > MAX_COLORMAP_LENGTH)
    throw badColormap(`is longer than ${MAX_COLORMAP_LENGTH} characters`);
  let given: unknown;
  try {
    given = parseJson(text);
  } catch (error) {
    throw badColormap(messageOf(error).replace(/^it /, ''));
  }
  if (typeof given !== 'object' || given === null)
    throw badColormap('is neither an object of values and colours nor a list of intervals and colours');
  const entries: [unknown, unknown][] = Array.isArray(given) ? given.map(pairOf) : Object.entries(given);
  if (entries.length === 0) throw badColormap('has no colours');
  if (entries.length > MAX_COLORMAP_ENTRIES)
    throw badColormap(`has more than ${MAX_COLORMAP_ENTRIES} entries`);
  if (Array.isArray(given))
    return intervalsOf(entries.map(([range, colour]) => [rangeOf(range), colourOf(colour)]));
  const colours = new Map(entries.map(([value, colour]) => [numberOf(value as string), colourOf(colour)]));
  return isRamp(colours) ? rampOf(colours) : { kind: 'values', colours };
}

const badColormap = (why: string) => badRenderParameter('colormap', why);

/** Text of a value for an error. Nested values are abbreviated, because they may be very deep. */
function show(value: unknown): string {
  const isNested = (one: unknown) => typeof one === 'object' && one !== null;
  if (Array.isArray(value)) return value.some(isNested) ? '[...]' : excerpt(value);
  return isNested(value) ? '{...}' : excerpt(value);
}

function pairOf(given: unknown): [unknown, unknown] {
  if (Array.isArray(given) && given.length === 2) return [given[0], given[1]];
  throw badColormap(`has the entry ${show(given)}, which is not [[from, to], colour]`);
}

function rangeOf(given: unknown): [from: number, to: number] {
  if (Array.isArray(given) && given.length === 2 && given.every(Number.isFinite) && given[0] < given[1])
    return [given[0], given[1]];
  throw badColormap(`has the interval ${show(given)}, which is not [from, to] with from below to`);
}

function numberOf(text: string): number {
  const value = text.trim() === '' ? NaN : Number(text);
  if (!Number.isFinite(value)) throw badColormap(`has the value ${excerpt(text)}, which is not a number`);
  return value;
}

const HEX_COLOUR = /^#(?:[0-9a-f]{3,4}|(?:[0-9a-f]{2}){3,4})$/i;

function colourOf(given: unknown): number {
  const bytes = typeof given === 'string' && HEX_COLOUR.test(given) ? bytesOf(given.slice(1)) : given;
  const isByte = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255;
  if (!Array.isArray(bytes) || bytes.length < 3 || bytes.length > 4 || !bytes.every(isByte))
    throw badColormap(
      `has the colour ${show(given)}: write "#RRGGBB", "#RRGGBBAA", or 3 or 4 numbers from 0 to 255`,
    );
  const [red, green, blue, opacity = 255] = bytes as number[];
  return ((red << 24) | (green << 16) | (blue << 8) | opacity) >>> 0;
}

function bytesOf(hex: string): number[] {
  const digits = hex.length <= 4 ? [...hex].map((digit) => digit + digit) : hex.match(/../g)!;
  return digits.map((byte) => Number.parseInt(byte, 16));
}

const isRamp = (colours: Map<number, number>) =>
  colours.size === 256 && Array.from({ length: 256 }, (_, i) => colours.has(i)).every(Boolean);

function rampOf(colours: Map<number, number>): Colormap {
  const bytes = Buffer.alloc(1024);
  for (const [value, colour] of colours) bytes.writeUInt32BE(colour, 4 * value);
  return { kind: 'ramp', colours: new Uint8Array(bytes) };
}

/** Cuts overlapping intervals into adjacent ones, so that the colour of a value is found by bisection. */
function intervalsOf(entries: [[number, number], number][]): Colormap {
  const bounds = [...new Set(entries.flatMap(([range]) => range))].sort((a, b) => a - b);
  const colours = bounds.map((from) => entries.findLast(([[low, high]]) => low <= from && from < high)?.[1]);
  return { kind: 'intervals', bounds, colours };
}

/** The legend of the National Land Cover Database (MRLC): code and RRGGBB. */
const NLCD_COLOURS = new Map([
  [11, 0x466b9f],
  [12, 0xd1def8],
  [21, 0xdec5c5],
  [22, 0xd99282],
  [23, 0xeb0000],
  [24, 0xab0000],
  [31, 0xb3ac9f],
  [41, 0x68ab5f],
  [42, 0x1c5f2c],
  [43, 0xb5c58f],
  [51, 0xaf963c],
  [52, 0xccb879],
  [71, 0xdfdfc2],
  [72, 0xd1d182],
  [73, 0xa4cc51],
  [74, 0x82ba9e],
  [81, 0xdcd939],
  [82, 0xab6c28],
  [90, 0xb8d9eb],
  [95, 0x6c9fb8],
]);

/** Colours of the mask codes: clear, cloud, shadow, snow, estimated, other date, not assessed. */
const MASK_COLOURS = new Map([
  [1, 0x6fa55b],
  [2, 0xffffff],
  [3, 0x404060],
  [4, 0x9fd8ff],
  [5, 0xe8c35a],
  [6, 0xb5cf6b],
  [255, 0xb0b0b0],
]);

/** Twelve distinct colours (ColorBrewer, Set3) for codes without a legend. */
const QUALITATIVE_COLOURS = [
  0x8dd3c7, 0xffffb3, 0xbebada, 0xfb8072, 0x80b1d3, 0xfdb462, 0xb3de69, 0xfccde5, 0xd9d9d9, 0xbc80bd,
  0xccebc5, 0xffed6f,
];

/** Unscaled bytes with at most this number of distinct values in a tile count as codes. */
const MAX_CODES = 32;

/**
 * The colormap of one band of codes, such as classes of land cover, whose numeric order has no meaning; undefined if its values are
 * measurements. `sorted`: values of the band.
 */
export function classColormap(
  tile: TileRecord,
  expressions: Expression[],
  sorted: Float64Array,
): Colormap | undefined {
  const [expression] = expressions;
  if (expressions.length !== 1 || expression.kind !== 'band') return undefined;
  const codes = new Set(sorted);
  const group = tile.groups.find(({ name, bands }) =>
    bands.some(
      (band, i) => expression.name === `${toIdentifier(name)}_b${i + 1}` || band.name === expression.name,
    ),
  );
  if (!group) return undefined;
  if (group.role === 'mask') return legend(MASK_COLOURS);
  const plain = group.bands.every(
    ({ scale, offset, commonName }) => scale === 1 && offset === 0 && !commonName,
  );
  if (group.dataType !== 'uint8' || !plain || codes.size > MAX_CODES) return undefined;
  if (tile.collection === 'nlcd' && [...codes].every((code) => NLCD_COLOURS.has(code)))
    return legend(NLCD_COLOURS);
  return legend(Array.from({ length: 256 }, (_, code) => [code, colourOfCode(code)]));
}

const legend = (colours: Iterable<readonly [code: number, rgb: number]>): Colormap => ({
  kind: 'values',
  colours: new Map([...colours].map(([code, rgb]) => [code, opaque(rgb)])),
});

/** The colour table of a TIFF for codes without a legend. */
export const codeColours = (): ColourTable =>
  [16, 8, 0].flatMap((shift) =>
    Array.from({ length: 256 }, (_, code) => 257 * ((colourOfCode(code) >> shift) & 0xff)),
  );

/** The colour of a code without a legend, RRGGBB. */
export const colourOfCode = (code: number): number => QUALITATIVE_COLOURS[code % QUALITATIVE_COLOURS.length];
