/** Finds algorithms by name, parses their parameters, and runs them. */
import { messageOf } from '../../errors.js';
import { parseJson } from '../../utils/json-text.js';
import { badRenderParameter } from '../errors.js';
import type { Definition, MapPixelSize, NumberParam, Params, Planes } from './algorithm-definition.js';
import { BAND_ALGORITHMS } from './band-algorithms.js';
import { TERRAIN_ALGORITHMS } from './terrain-algorithms.js';

/** Plain data, for worker threads. */
export interface Algorithm {
  name: string;
  params: Params;
  /** Number of input bands. */
  bands: number;
}

const DEFINITIONS: Record<string, Definition> = {
  ...TERRAIN_ALGORITHMS,
  ...BAND_ALGORITHMS,
  ndi: BAND_ALGORITHMS.normalizedIndex,
};

/** Names of titiler, and `ndi` for `normalizedIndex`. */
export const ALGORITHMS: readonly string[] = Object.keys(DEFINITIONS);

const MAX_LENGTH = 1000;
const badParams = (why: string) => badRenderParameter('algorithm_params', why);

/** Parses an algorithm for an image of `bands` bands. `text`: its parameters, as a JSON object. Throws TW_IMAGERY_LOOK. */
export function parseAlgorithm(name: string, text: string | undefined, bands: number): Algorithm {
  const definition = Object.hasOwn(DEFINITIONS, name) ? DEFINITIONS[name] : undefined;
  if (!definition)
    throw badRenderParameter('algorithm', `"${name}" is not known: there are ${ALGORITHMS.join(', ')}`);
  if (!definition.bands.includes(bands)) {
    const [least, ...more] = definition.bands;
    const wanted = more.length > 2 ? `${least} to ${more.at(-1)}` : definition.bands.join(' or ');
    throw badRenderParameter(
      'algorithm',
      `${name} needs ${wanted} ${wanted === '1' ? 'band' : 'bands'}, not ${bands}: choose with assets and bidx, or give expressions`,
    );
  }
  const params = paramsOf(name, text, definition.params);
  const { minz, maxz } = params;
  if (minz !== undefined && maxz !== undefined && minz >= maxz)
    throw badParams(`has a minz of ${minz}, which is not below the maxz of ${maxz}`);
  return { name, params, bands };
}

function paramsOf(algorithm: string, text = '{}', known: Record<string, NumberParam> = {}): Params {
  if (text.length > MAX_LENGTH) throw badParams(`is longer than ${MAX_LENGTH} characters`);
  let given: unknown;
  try {
    given = parseJson(text);
  } catch (error) {
    throw badParams(messageOf(error).replace(/^it /, ''));
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw badParams('is not a JSON object such as {"azimuth": 315}');
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    const names = Object.keys(known);
    const advice = names.length > 0 ? `${algorithm} has ${names.join(', ')}` : `${algorithm} has none`;
    throw badParams(`has the unknown parameter "${unknown}": ${advice}`);
  }
  const values = given as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(known).map(([name, param]) => [name, numberOf(name, param, values[name])]),
  );
}

function numberOf(name: string, { default: own, min, max, whole }: NumberParam, given: unknown) {
  // Null counts as not given.
  if (given === undefined || given === null) return own;
  if (typeof given !== 'number' || given < min || given > max || (whole && !Number.isInteger(given)))
    throw badParams(`has a ${name} that is not ${whole ? 'an integer' : 'a number'} from ${min} to ${max}`);
  return given;
}

/** Number of planes that an algorithm computes. */
export const outputPlaneCount = ({ name, bands }: Algorithm): number => DEFINITIONS[name].makes?.(bands) ?? 1;

/** The range of values from black to white; undefined if it depends on the values. */
export const outputRange = ({ name }: Algorithm): Definition['range'] => DEFINITIONS[name].range;

/** Pixels that are cut off each side of a map: the requested buffer, or the pixels that depend on pixels beyond the map. */
export const borderPixels = ({ name, params }: Algorithm): number =>
  params['buffer'] ?? DEFINITIONS[name].margin ?? 0;

/** Runs an algorithm, and cuts `cut` pixels off each side. Throws TW_IMAGERY_LOOK if no pixel remains. */
export function applyAlgorithm(
  { name, params }: Algorithm,
  picture: Planes,
  pixel: MapPixelSize,
  cut: number,
): Planes {
  const width = picture.width - 2 * cut;
  const height = picture.height - 2 * cut;
  if (width < 1 || height < 1)
    throw badParams(
      `has a buffer of ${cut}, which leaves nothing of ${picture.width} x ${picture.height} pixels`,
    );
  const planes = DEFINITIONS[name].run(picture, params, pixel);
  if (cut === 0) return { width, height, planes };
  const inner = (plane: Float64Array) => {
    const out = new Float64Array(width * height);
    for (let row = 0; row < height; row++) {
      const from = (row + cut) * picture.width + cut;
      out.set(plane.subarray(from, from + width), row * width);
    }
    return out;
  };
  return { width, height, planes: planes.map(inner) };
}
