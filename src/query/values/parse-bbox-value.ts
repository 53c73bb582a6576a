/** Bounding boxes in parameters. */
import type { Bbox } from '../../grid/index.js';
import { badBbox } from '../errors.js';
import { axisOrderHint } from './axis-order-hint.js';
import { parseNumber } from './parse-number-value.js';

const LONGITUDE = '-?(180(\\.0+)?|(1[0-7][0-9]|[0-9]?[0-9])(\\.[0-9]+)?)';
const LATITUDE = '-?(90(\\.0+)?|[0-8]?[0-9](\\.[0-9]+)?)';
const HEIGHT = '-?[0-9]+(\\.[0-9]+)?';
const CORNER = `${LONGITUDE},${LATITUDE}`;

/** Pattern of boxes as text, for JSON Schemas. It does not exclude a south above its north. */
export const BBOX_PATTERN = `^${CORNER},(${CORNER}|${HEIGHT},${CORNER},${HEIGHT})$`;

/** JSON Schemas of boxes of 4 or 6 numbers. */
export const BBOX_SIZES = [4, 6].map((size) => ({ type: 'array', minItems: size, maxItems: size }));

/** Parses west,south,east,north in degrees. The heights of six numbers are ignored. West > east crosses the antimeridian. */
export function parseBbox(text: string): Bbox {
  return checkBbox(text.split(',').map(parseNumber), text);
}

/** Checks the numbers of a bounding box, as in a JSON body. */
export function checkBbox(numbers: readonly number[], given = numbers.join(',')): Bbox {
  if (!numbers.every(Number.isFinite)) throw badBbox(given, 'has a part that is not a number');
  if (numbers.length !== 4 && numbers.length !== 6) throw badBbox(given, `has ${numbers.length} numbers`);
  const [west, south, east, north] = (
    numbers.length === 4 ? numbers : [numbers[0], numbers[1], numbers[3], numbers[4]]
  ) as Bbox;
  if (numbers.length === 6 && numbers[2] > numbers[5])
    throw badBbox(given, 'has its lower height above its upper one');
  if (Math.abs(south) > 90 || Math.abs(north) > 90)
    throw badBbox(given, `has a latitude beyond 90; ${swapHint(numbers, [west, south, east, north])}`);
  if (Math.abs(west) > 180 || Math.abs(east) > 180) throw badBbox(given, 'has a longitude beyond 180');
  if (south > north) throw badBbox(given, 'has its south above its north');
  return [west, south, east, north];
}

function swapHint(numbers: readonly number[], [west, south, east, north]: Bbox): string {
  const order = numbers.length === 4 ? [1, 0, 3, 2] : [1, 0, 2, 4, 3, 5];
  const corners = [
    [west, south],
    [east, north],
  ] as const;
  return axisOrderHint(corners, order.map((i) => numbers[i]).join(','));
}
