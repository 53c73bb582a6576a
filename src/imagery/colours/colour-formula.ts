/**
 * Colour formulas such as `gamma rgb 1.8, sigmoidal rgb 6 0.2, saturation 1.2`: the operations of rio-color and color-operations (MIT,
 * Copyright 2015 Mapbox), with their formulas.
 */
import { badRenderParameter } from '../errors.js';
import { saturate } from './colour-space.js';

/** Plain data, for worker threads. Planes count from 0. */
export type ColourOperation =
  | { kind: 'gamma'; planes: number[]; gamma: number }
  | { kind: 'sigmoidal'; planes: number[]; contrast: number; bias: number }
  | { kind: 'saturation'; proportion: number };

const MAX_LENGTH = 500;
/** Each operation is a pass over all pixels. */
const MAX_OPERATIONS = 8;

/** Syntax of an operation: its name, its bands if any, and its numbers. */
const FORMS: Record<ColourOperation['kind'], string> = {
  gamma: 'gamma BANDS NUMBER',
  sigmoidal: 'sigmoidal BANDS CONTRAST BIAS',
  saturation: 'saturation NUMBER',
};
const LETTERS = 'rgb';

const isOperation = (word: string): word is ColourOperation['kind'] => Object.hasOwn(FORMS, word);
const badFormula = (why: string) => badRenderParameter('color_formula', why);

/** Parses a formula for an image of `planes` planes. Commas count as spaces; case does not matter. Throws TW_IMAGERY_LOOK. */
export function parseColourFormula(text: string, planes: number): ColourOperation[] {
  if (text.length > MAX_LENGTH) throw badFormula(`is longer than ${MAX_LENGTH} characters`);
  const words = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  if (words.length === 0) throw badFormula('is empty: write operations such as "gamma rgb 1.5"');
  const starts = words.flatMap((word, i) => (isOperation(word) ? [i] : []));
  if (starts[0] !== 0)
    throw badFormula(`begins with "${words[0]}": operations are ${Object.values(FORMS).join(', ')}`);
  if (starts.length > MAX_OPERATIONS) throw badFormula(`has more than ${MAX_OPERATIONS} operations`);
  return starts.map((start, i) => operationOf(words.slice(start, starts[i + 1]), planes));
}

function operationOf([name, ...given]: string[], planes: number): ColourOperation {
  const kind = name as ColourOperation['kind'];
  const bands = kind === 'saturation' ? undefined : given.shift();
  const wanted = kind === 'sigmoidal' ? 2 : 1;
  const numbers = given.map(Number);
  if (
    (kind !== 'saturation' && bands === undefined) ||
    numbers.length !== wanted ||
    !numbers.every(Number.isFinite)
  )
    throw badFormula(`has "${[name, bands, ...given].join(' ')}": write ${FORMS[kind]}`);
  const [first, second] = numbers;
  switch (kind) {
    case 'gamma':
      if (first <= 0) throw badFormula(`has a gamma of ${first}: it must be above 0`);
      return { kind, planes: planesOf(bands!, planes), gamma: first };
    case 'sigmoidal':
      if (second < 0 || second > 1) throw badFormula(`has a bias of ${second}: it must be from 0 to 1`);
      return { kind, planes: planesOf(bands!, planes), contrast: first, bias: second };
    case 'saturation':
      if (planes !== 3) throw badFormula(`has saturation, which is for 3 bands, and the map has ${planes}`);
      return { kind, proportion: first };
  }
}

function planesOf(bands: string, planes: number): number[] {
  const found = [...bands].map((band) => (/[123]/.test(band) ? Number(band) - 1 : LETTERS.indexOf(band)));
  if (found.includes(-1)) throw badFormula(`has the bands "${bands}": bands are r, g and b, or 1, 2 and 3`);
  const missing = found.findIndex((plane) => plane >= planes);
  if (missing >= 0) throw badFormula(`names band ${bands[missing]}, and the map has ${planes}`);
  return [...new Set(found)];
}

/** Applies operations in order and in place. Planes are 0 to 1. */
export function applyColourFormula(planes: Float64Array[], operations: ColourOperation[]): void {
  for (const operation of operations) {
    if (operation.kind === 'saturation') saturate(planes, operation.proportion);
    else {
      const curve =
        operation.kind === 'gamma'
          ? (value: number) => value ** (1 / operation.gamma)
          : sigmoidal(operation.contrast, operation.bias);
      for (const plane of operation.planes.map((p) => planes[p]))
        for (let i = 0; i < plane.length; i++) plane[i] = inRange(curve(plane[i]));
    }
  }
}

/** Clamps to 0 to 1. NaN, at the ends of extreme curves, becomes 0. */
const inRange = (value: number) => (value > 0 ? Math.min(1, value) : 0);

/** Sigmoidal contrast around `bias`; for a negative contrast, its inverse. */
function sigmoidal(contrast: number, bias: number): (value: number) => number {
  if (contrast === 0) return (value) => value;
  const alpha = bias === 0 ? Number.EPSILON : bias;
  const sigmoid = (exponent: number) => 1 / (1 + Math.exp(exponent));
  const low = sigmoid(contrast * alpha);
  const high = sigmoid(contrast * (alpha - 1));
  if (contrast > 0) return (value) => (sigmoid(contrast * (alpha - value)) - low) / (high - low);
  return (value) => (contrast * alpha - Math.log(1 / (value * high - value * low + low) - 1)) / contrast;
}
