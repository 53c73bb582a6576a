/** Custom colormaps of titiler's parameter `colormap`: JSON with a colour for each value or interval of values. */

import { excerpt, messageOf } from '../../errors.js';
import { parseJson } from '../../utils/json-text.js';
import { badRenderParameter } from '../errors.js';
import type { Colormap } from './colormap-lookup.js';

const MAX_LENGTH = 16_384;
const MAX_ENTRIES = 1024;

/**
 * Parses `{"value": colour, ...}` or `[[[from, to], colour], ...]`. A colour is `#RGB`, `#RGBA`, `#RRGGBB`, `#RRGGBBAA`, or a list of 3 or
 * 4 numbers from 0 to 255. Intervals include `from` and not `to`; if they overlap, the last one counts. As in rio-tiler, values are
 * truncated to integers if the keys of an object are exactly 0 to 255. Throws TW_IMAGERY_LOOK.
 */
export function parseColormap(text: string): Colormap {
  if (text.length > MAX_LENGTH) throw badColormap(`is longer than ${MAX_LENGTH} characters`);
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
  if (entries.length > MAX_ENTRIES) throw badColormap(`has more than ${MAX_ENTRIES} entries`);
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

const HEX = /^#(?:[0-9a-f]{3,4}|(?:[0-9a-f]{2}){3,4})$/i;

function colourOf(given: unknown): number {
  const bytes = typeof given === 'string' && HEX.test(given) ? bytesOf(given.slice(1)) : given;
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
