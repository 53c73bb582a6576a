/**
 * Finds the clouds of a scene and their shadows, from a class and the infrared light of each pixel. As in Fmask (Zhu & Woodcock
 * 2012, "Object-based cloud and cloud shadow detection in Landsat imagery", Remote Sensing of Environment 118), a shadow is
 * ground that is dark in the near and short-wave infrared, where a cloud that is moved along the sunlight meets the ground.
 * The length of the move and, unless the sun's azimuth is known, its direction are those for which the ground under the moved
 * clouds is darkest. Other dark ground near clouds may be shadow or water: it is not assessed.
 */
import { Mask } from '../../raster/index.js';
import { medianOfSorted } from '../../utils/sorted.js';
import { dilate, forEachInDisk } from './filters.js';

/** The pixels of a scene in row order, a byte each. */
export interface LightRaster {
  width: number;
  height: number;
  /** Before: codes of `Light`. After: mask codes. */
  codes: Uint8Array;
  /** Reflectance at 0.86 and 1.6 micrometres times `LIGHT_SCALE`. Overwritten. */
  nir: Uint8Array;
  swir16: Uint8Array;
}

/** Classes of pixels: nodata, clear, cloud and notAssessed of `Mask`, and these. */
export const Light = {
  /** Cloud if it is close to cloud. */
  bright: 10,
  /** Cloud whose shadow is too weak to be found. */
  cirrus: 11,
  /** Ground close to cloud; only while clouds are found. */
  rim: 12,
} as const;

/** For reflectances up to 0.64. Brighter ground counts as that bright. */
export const LIGHT_SCALE = 400;

/** Settings that `npm run bench -- cloud` varies. */
export interface CloudSettings {
  /** Bright pixels belong to a cloud up to this distance, pixels. */
  growth: number;
  /** Ground is dark if it lacks this share of the light of the brighter ground around it, in both infrared bands. */
  darkness: number;
}

export const CLOUD_SETTINGS: CloudSettings = { growth: 4, darkness: 0.3 };

/** Smaller objects are mostly roofs. */
const MIN_CLOUD_PIXELS = 8;
const RIM_PIXELS = 4;
/** Longest move that is searched, and the shortest: a shorter one compares a cloud with its own rim. Pixels. */
const REACH_PIXELS = 150;
const MIN_REACH_PIXELS = 5;
/** The highest clouds whose shadow is found, relative to the height that matches best; and the highest possible clouds. */
const HIGHER_CLOUDS = 1.5;
const HIGHEST_CLOUDS = 4;
/** How much darker than other ground the ground under the moved clouds must be, and by how many deviations of all moves. */
const MIN_GAIN = 0.06;
const MIN_DEVIATIONS = 5;
/** Degrees. The satellite looks sideways, so clouds do not appear exactly on the sun's side of their shadows. */
const AZIMUTH_TOLERANCE = 25;

/** `sunAzimuth`: degrees clockwise from the top of the raster, if it is known. */
export function findCloudAndShadow(
  raster: LightRaster,
  sunAzimuth?: number,
  { growth, darkness }: CloudSettings = CLOUD_SETTINGS,
): void {
  const { width, height, codes } = raster;
  growClouds(raster, growth);
  removeSmallClouds(raster);
  markRims(raster);
  const dark = measureDarkness(raster);
  const move = findMove(raster, dark, sunAzimuth);
  const isNear = nearClouds(raster);
  const limit = darkness * DARKNESS_SCALE;
  // Collected, because the search from other pixels needs the classes.
  const found = raster.swir16.fill(0);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      if (!isGround(codes[at]) || dark[at] <= limit) continue;
      if (move) found[at] = codeOfDarkGround(raster, x, y, move);
      else if (isNear(x, y)) found[at] = Mask.notAssessed;
    }
  }
  for (let at = 0; at < codes.length; at++) {
    if (found[at] !== 0) codes[at] = found[at];
    else if (codes[at] === Light.cirrus) codes[at] = Mask.cloud;
    else if (codes[at] === Light.rim || codes[at] === Light.bright) codes[at] = Mask.clear;
  }
}

const isGround = (code: number) => code === Mask.clear || code === Light.rim;

/** Only while clouds grow: so that each round adds one pixel. */
const NEW_CLOUD = 20;

function growClouds({ width, height, codes }: LightRaster, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < codes.length; at++)
      if (codes[at] === Light.bright && touchesCloud(codes, at, width, height)) codes[at] = NEW_CLOUD;
    for (let at = 0; at < codes.length; at++) if (codes[at] === NEW_CLOUD) codes[at] = Mask.cloud;
  }
  for (let at = 0; at < codes.length; at++) if (codes[at] === Light.bright) codes[at] = Mask.clear;
}

function touchesCloud(codes: Uint8Array, at: number, width: number, height: number): boolean {
  let touches = false;
  forEachNeighbour(at, width, height, (next) => {
    if (codes[next] === Mask.cloud) touches = true;
  });
  return touches;
}

function forEachNeighbour(at: number, width: number, height: number, visit: (next: number) => void): void {
  const x = at % width;
  const y = (at - x) / width;
  for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row++)
    for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++)
      if (row !== y || column !== x) visit(row * width + column);
}

/** Small objects that look like cloud are not assessed. */
function removeSmallClouds({ width, height, codes }: LightRaster): void {
  const small: number[] = [];
  for (let at = 0; at < codes.length; at++)
    if (codes[at] === Mask.cloud && objectSize(codes, at, width, height) < MIN_CLOUD_PIXELS) small.push(at);
  for (const at of small) codes[at] = Mask.notAssessed;
}

/** Pixels of the cloud that contains a pixel, counted up to `MIN_CLOUD_PIXELS`. */
function objectSize(codes: Uint8Array, start: number, width: number, height: number): number {
  const object = [start];
  for (let i = 0; i < object.length && object.length < MIN_CLOUD_PIXELS; i++)
    forEachNeighbour(object[i], width, height, (next) => {
      if (codes[next] === Mask.cloud && !object.includes(next)) object.push(next);
    });
  return object.length;
}

function markRims({ width, height, codes }: LightRaster): void {
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      if (codes[at] !== Mask.cloud) continue;
      const isInside =
        x > 0 &&
        y > 0 &&
        x < width - 1 &&
        y < height - 1 &&
        codes[at - 1] === Mask.cloud &&
        codes[at + 1] === Mask.cloud &&
        codes[at - width] === Mask.cloud &&
        codes[at + width] === Mask.cloud;
      if (isInside) continue;
      forEachInDisk(x, y, width, height, RIM_PIXELS, (next) => {
        if (codes[next] === Mask.clear) codes[next] = Light.rim;
      });
    }
  }
}

// --- darkness ---------------------------------------------------------------------------------------------------

/** Darkness from 0 to a half, as bytes. */
const DARKNESS_SCALE = 510;
/** Width of a block, pixels. The light of its ground is that of 3 x 3 blocks. */
const BLOCK_PIXELS = 32;
/** Shadow is compared with ground that is brighter than most. */
const BRIGHTER_GROUND = 0.65;
/** Every second pixel of every second row is counted. A block with fewer pixels has the light of the entire scene. */
const MIN_BLOCK_SAMPLES = 50;

/** The share of the light of the ground around it that a pixel lacks, in both bands; 0 except for ground. Overwrites `nir`. */
function measureDarkness(raster: LightRaster): Uint8Array {
  const { width, height, codes, nir, swir16 } = raster;
  const bands = [nir, swir16].map((light) => ({ light, blocks: groundLight(raster, light) }));
  const row = new Float32Array(width);
  for (let y = 0; y < height; y++) {
    const start = y * width;
    // The larger share of the two bands.
    const shares = new Float32Array(width);
    for (const { light, blocks } of bands) {
      interpolateRow(blocks, width, height, y, row);
      for (let x = 0; x < width; x++) shares[x] = Math.max(shares[x], light[start + x] / row[x]);
    }
    for (let x = 0; x < width; x++) {
      const darkness = isGround(codes[start + x]) ? Math.min(0.5, Math.max(0, 1 - shares[x])) : 0;
      nir[start + x] = Math.round(DARKNESS_SCALE * darkness);
    }
  }
  return nir;
}

/** The light of the brighter ground around each block. */
function groundLight({ width, height, codes }: LightRaster, light: Uint8Array): Float32Array {
  const columns = Math.ceil(width / BLOCK_PIXELS);
  const rows = Math.ceil(height / BLOCK_PIXELS);
  const histogramOf = (left: number, top: number, size: number) => {
    const histogram = new Uint32Array(256);
    for (let y = Math.max(0, top); y < Math.min(height, top + size); y += 2) {
      const end = Math.min(width, left + size);
      for (let x = Math.max(0, left); x < end; x += 2)
        if (codes[y * width + x] === Mask.clear) histogram[light[y * width + x]]++;
    }
    return histogram;
  };
  const everywhere = quantile(histogramOf(0, 0, Math.max(width, height)), 1) ?? 0;
  return Float32Array.from({ length: columns * rows }, (_, block) => {
    const column = block % columns;
    const row = (block - column) / columns;
    const left = (column - 1) * BLOCK_PIXELS;
    const top = (row - 1) * BLOCK_PIXELS;
    return quantile(histogramOf(left, top, 3 * BLOCK_PIXELS), MIN_BLOCK_SAMPLES) ?? everywhere;
  });
}

/** The light that `BRIGHTER_GROUND` of the pixels do not exceed; undefined if there are fewer than `samples` pixels. */
function quantile(histogram: Uint32Array, samples: number): number | undefined {
  const count = histogram.reduce((sum, of) => sum + of, 0);
  if (count < samples) return undefined;
  let below = 0;
  return histogram.findIndex((of) => {
    below += of;
    return below >= BRIGHTER_GROUND * count;
  });
}

/** Values of blocks at the pixels of a row, linear between the centres of blocks. */
function interpolateRow(
  blocks: Float32Array,
  width: number,
  height: number,
  y: number,
  out: Float32Array,
): void {
  const columns = Math.ceil(width / BLOCK_PIXELS);
  const down = between(y, Math.ceil(height / BLOCK_PIXELS));
  const mix = (column: number) =>
    blocks[down.low * columns + column] * (1 - down.part) + blocks[down.high * columns + column] * down.part;
  const row = Float32Array.from({ length: columns }, (_, column) => mix(column));
  for (let x = 0; x < width; x++) {
    const { low, high, part } = between(x, columns);
    out[x] = row[low] * (1 - part) + row[high] * part;
  }
}

/** The blocks whose centres enclose a pixel, and the position between them. */
function between(pixel: number, blocks: number): { low: number; high: number; part: number } {
  const at = Math.min(blocks - 1, Math.max(0, (pixel + 0.5) / BLOCK_PIXELS - 0.5));
  const low = Math.floor(at);
  return { low, high: Math.min(blocks - 1, low + 1), part: at - low };
}

// --- move -------------------------------------------------------------------------------------------------------

/** From a cloud to its shadow, pixels. */
interface Move {
  dx: number;
  dy: number;
}

/** Pixels of clouds that are moved, spread over all clouds. */
const MAX_SAMPLES = 4096;
/** Moves are searched in steps of so many pixels first. */
const COARSE_STEP = 4;
/** Moves that lead most of the clouds out of the raster, or onto clouds, do not count. */
const MIN_SHARE_ON_GROUND = 0.2;

/** The move that leads the clouds to the darkest ground; undefined if none stands out. */
function findMove(raster: LightRaster, dark: Uint8Array, sunAzimuth: number | undefined): Move | undefined {
  const clouds = sampleClouds(raster.codes);
  const mean = meanDarkness(raster.codes, dark);
  const gainOf = ({ dx, dy }: Move): MoveGain => {
    const { sum, count } = groundUnder(raster, dark, clouds, dx, dy);
    return { dx, dy, count, gain: sum - mean * count };
  };
  const all = movesAround({ dx: 0, dy: 0 }, REACH_PIXELS, COARSE_STEP)
    .filter(({ dx, dy }) => Math.hypot(dx, dy) >= MIN_REACH_PIXELS && Math.hypot(dx, dy) <= REACH_PIXELS)
    .map(gainOf);
  const most = all.reduce((max, { count }) => Math.max(max, count), 0);
  const moves = all.filter(({ count }) => count > 0 && count >= MIN_SHARE_ON_GROUND * most);
  const possible = moves.filter((move) => sunAzimuth === undefined || leadsFromSun(move, sunAzimuth));
  if (possible.length === 0) return undefined;
  const best = possible.reduce(larger);
  const gains = Float64Array.from(moves, ({ gain }) => gain);
  const typical = medianOfSorted(gains.sort());
  const deviation = Math.sqrt(gains.reduce((sum, gain) => sum + (gain - typical) ** 2, 0) / gains.length);
  const standsOut = best.gain - typical > MIN_DEVIATIONS * deviation;
  if (!standsOut || best.gain < MIN_GAIN * DARKNESS_SCALE * best.count) return undefined;
  return movesAround(best, COARSE_STEP - 1, 1)
    .map(gainOf)
    .reduce(larger);
}

interface MoveGain extends Move {
  /** Ground pixels under the moved clouds. */
  count: number;
  /** Their darkness beyond that of other ground, summed. */
  gain: number;
}

const larger = (a: MoveGain, b: MoveGain) => (b.gain > a.gain ? b : a);

function movesAround({ dx, dy }: Move, reach: number, step: number): Move[] {
  const moves: Move[] = [];
  for (let down = -reach; down <= reach; down += step)
    for (let across = -reach; across <= reach; across += step) moves.push({ dx: dx + across, dy: dy + down });
  return moves;
}

function leadsFromSun({ dx, dy }: Move, sunAzimuth: number): boolean {
  const azimuth = (Math.atan2(-dx, dy) * 180) / Math.PI;
  const turn = Math.abs(((azimuth - sunAzimuth) % 360) + 360) % 360;
  return Math.min(turn, 360 - turn) <= AZIMUTH_TOLERANCE;
}

function sampleClouds(codes: Uint8Array): Int32Array {
  let count = 0;
  for (const code of codes) if (code === Mask.cloud) count++;
  const stride = Math.max(1, count / MAX_SAMPLES);
  const samples = new Int32Array(Math.min(count, MAX_SAMPLES));
  for (let at = 0, cloud = 0, next = 0; next < samples.length; at++)
    if (codes[at] === Mask.cloud && cloud++ >= next * stride) samples[next++] = at;
  return samples;
}

function meanDarkness(codes: Uint8Array, dark: Uint8Array): number {
  let sum = 0;
  let count = 0;
  for (let at = 0; at < codes.length; at++) {
    if (!isGround(codes[at])) continue;
    sum += dark[at];
    count++;
  }
  return count === 0 ? 0 : sum / count;
}

/** Darkness and number of the ground pixels under the moved clouds. */
function groundUnder(
  { width, height, codes }: LightRaster,
  dark: Uint8Array,
  clouds: Int32Array,
  dx: number,
  dy: number,
): { sum: number; count: number } {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < clouds.length; i++) {
    const x = (clouds[i] % width) + dx;
    const y = Math.floor(clouds[i] / width) + dy;
    if (x < 0 || y < 0 || x >= width || y >= height) continue;
    const at = y * width + x;
    if (!isGround(codes[at])) continue;
    sum += dark[at];
    count++;
  }
  return { sum, count };
}

// --- shadow -----------------------------------------------------------------------------------------------------

/** Searches the cloud that shades a pixel, in the direction of the sun. Beyond the raster, there may be one. */
function codeOfDarkGround(
  { width, height, codes }: LightRaster,
  x: number,
  y: number,
  { dx, dy }: Move,
): number {
  const length = Math.hypot(dx, dy);
  let doubt: number = Mask.clear;
  for (let step = 0; step <= HIGHEST_CLOUDS * length; step++) {
    const column = Math.round(x - (dx * step) / length);
    const row = Math.round(y - (dy * step) / length);
    const isOutside = column < 0 || row < 0 || column >= width || row >= height;
    const code = isOutside ? Mask.nodata : codes[row * width + column];
    const isLikely = step <= HIGHER_CLOUDS * length;
    if (code === Mask.cloud || code === Light.rim) return isLikely ? Mask.shadow : Mask.notAssessed;
    if (isLikely && code === Mask.nodata) doubt = Mask.notAssessed;
    if (isOutside && !isLikely) break;
  }
  return doubt;
}

/** Blocks around a pixel in which clouds count as near: a bit more than `REACH_PIXELS`. */
const NEAR_BLOCKS = Math.ceil(REACH_PIXELS / BLOCK_PIXELS);

/** Tests if cloud in some direction may shade a pixel. */
function nearClouds({ width, height, codes }: LightRaster): (x: number, y: number) => boolean {
  const columns = Math.ceil(width / BLOCK_PIXELS);
  const rows = Math.ceil(height / BLOCK_PIXELS);
  const blocks = new Uint8Array(columns * rows);
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at++)
      if (codes[at] === Mask.cloud)
        blocks[Math.floor(y / BLOCK_PIXELS) * columns + Math.floor(x / BLOCK_PIXELS)] = 1;
  const near = dilate(blocks, columns, rows, NEAR_BLOCKS);
  return (x, y) => near[Math.floor(y / BLOCK_PIXELS) * columns + Math.floor(x / BLOCK_PIXELS)] === 1;
}
