/** The algorithms by name: their parameters are read, and they are run. */
import { badRenderParameter } from '../errors.js';
import { BAND_ALGORITHMS } from './bands.js';
import type { Definition, MapPixelSize, NumberParam, Params, Planes } from './definition.js';
import { TERRAIN_ALGORITHMS } from './terrain.js';

/** Plain data: it can be sent to a worker thread. */
export interface Algorithm {
  name: string;
  params: Params;
  /** Bands that the picture has before it. */
  bands: number;
}

const DEFINITIONS: Record<string, Definition> = {
  ...TERRAIN_ALGORITHMS,
  ...BAND_ALGORITHMS,
  ndi: BAND_ALGORITHMS.normalizedIndex,
};

/** Names as titiler has them, and `ndi` for `normalizedIndex`. */
export const ALGORITHMS: readonly string[] = Object.keys(DEFINITIONS);

const MAX_LENGTH = 1000;
const badParams = (why: string) => badRenderParameter('algorithm_params', why);

/** Reads an algorithm for a picture of these many bands. `text`: its parameters, as a JSON object. Throws TW_IMAGERY_LOOK. */
export function parseAlgorithm(name: string, text: string | undefined, bands: number): Algorithm {
  const definition = Object.hasOwn(DEFINITIONS, name) ? DEFINITIONS[name] : undefined;
  if (!definition)
    throw badRenderParameter('algorithm', `"${name}" is not known: there are ${ALGORITHMS.join(', ')}`);
  if (!definition.bands.includes(bands)) {
    const [least, ...more] = definition.bands;
    const wanted = more.length > 2 ? `${least} to ${more.at(-1)}` : definition.bands.join(' or ');
    throw badRenderParameter(
      'algorithm',
      `${name} is made of ${wanted} ${wanted === '1' ? 'band' : 'bands'}, not of ${bands}: choose with assets and bidx, or give expressions`,
    );
  }
  const params = paramsOf(name, definition.params, text);
  const { minz, maxz } = params;
  if (minz !== undefined && maxz !== undefined && minz >= maxz)
    throw badParams(`has a minz of ${minz}, which is not below the maxz of ${maxz}`);
  return { name, params, bands };
}

function paramsOf(algorithm: string, known: Record<string, NumberParam>, text = '{}'): Params {
  if (text.length > MAX_LENGTH) throw badParams(`is longer than ${MAX_LENGTH} characters`);
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw badParams(`is not JSON: ${(error as Error).message}`);
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
  // JSON writes "not given" as null.
  if (given === undefined || given === null) return own;
  if (typeof given !== 'number' || given < min || given > max || (whole && !Number.isInteger(given)))
    throw badParams(`has a ${name} that is not a ${whole ? 'whole ' : ''}number from ${min} to ${max}`);
  return given;
}

/** Planes that an algorithm makes. */
export const outputPlaneCount = ({ name, bands }: Algorithm): number => DEFINITIONS[name].makes(bands);

/** The range of values that is stretched from black to white; undefined if that depends on them. */
export const outputRange = ({ name }: Algorithm): Definition['range'] => DEFINITIONS[name].range;

/** Pixels that it cuts off each side of a map: those that it was asked to, or that depend on pixels beyond the map. */
export const borderPixels = ({ name, params }: Algorithm): number =>
  params['buffer'] ?? DEFINITIONS[name].margin ?? 0;

/**
 * Runs an algorithm, and cuts `cut` pixels off each side. Throws TW_IMAGERY_LOOK if nothing is left.
 */
export function applyAlgorithm(
  { name, params }: Algorithm,
  picture: Planes,
  pixel: MapPixelSize,
  cut: number,
): Planes {
  const [width, height] = [picture.width - 2 * cut, picture.height - 2 * cut];
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
