/**
 * `cloud`: how well the reflectance tests find clouds that a person outlined, and how fast a model of s2cloudless's size runs.
 * The peers of the tests are their two parts alone; that of the model is the same work pixel by pixel.
 */

import { dilate } from '../../src/ingest/cloud/filters.js';
import { type LightgbmModel, parseLightgbm, predictLightgbm } from '../../src/ingest/cloud/lightgbm.js';
import {
  detectCloudByReflectance,
  isPotentialCloud,
  passesBrightnessTest,
} from '../../src/ingest/cloud/reflectance.js';
import { Mask } from '../../src/raster/index.js';
import {
  CLOUD_MASK_SETS,
  type CloudMaskSet,
  cloudMaskFolder,
  hasCloudMasks,
  readCloudMasks,
  scoreCloud,
} from '../../test/support/cloud-masks.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';

const FEATURES = 10;
const TREES = 170;
const LEAVES = 770;

export async function benchCloud(options: BenchOptions): Promise<BenchResult[]> {
  if (!hasCloudMasks) options.log(`no scores: the hand-made cloud masks are not in ${cloudMaskFolder}`);
  const scores = hasCloudMasks ? await Promise.all(CLOUD_MASK_SETS.map(scoresOf)) : [];
  return [...scores.flat(), await modelSpeed(options)];
}

async function scoresOf(name: string): Promise<BenchResult[]> {
  const set = await readCloudMasks(name);
  const { bands, cloud, width, height } = set;
  const out = new Uint8Array(cloud.length);
  detectCloudByReflectance(bands, new Uint8Array(cloud.length).fill(1), out);
  const found = out.map((code) => Number(code === Mask.cloud));
  const ours = scoreCloud(found, cloud);
  const peers = {
    'dilated by 1 px': scoreCloud(dilate(found, width, height, 1), cloud),
    'dilated by 2 px': scoreCloud(dilate(found, width, height, 2), cloud),
    "Fmask's first pass alone": scoreCloud(maskBy(set, isPotentialCloud), cloud),
    'brightness alone': scoreCloud(
      maskBy(set, (blue, _green, red, _nir, swir16) => passesBrightnessTest(blue, red, swir16)),
      cloud,
    ),
  };
  return (['precision', 'recall', 'f1', 'accuracy'] as const).map((score) =>
    result(
      `${name} ${score}`,
      'of 1',
      ours[score],
      Object.fromEntries(Object.entries(peers).map(([peer, scores]) => [peer, scores[score]])),
    ),
  );
}

function maskBy({ bands, cloud }: CloudMaskSet, test: typeof isPotentialCloud): Uint8Array {
  const { blue, green, red, nir, swir16, swir22 } = bands;
  return cloud.map((_, i) => Number(test(blue[i], green[i], red[i], nir[i], swir16[i], swir22[i])));
}

/** Random pixels are the worst case: each takes a different path through each tree. */
async function modelSpeed({ short, log }: BenchOptions): Promise<BenchResult> {
  const next = random(1);
  const model = parseLightgbm(Buffer.from(syntheticModel(next)), 'synthetic');
  const pixels = short ? 4096 : 32_768;
  const rows = Float32Array.from({ length: pixels * FEATURES }, next);
  const out = new Float32Array(pixels);
  const ways = { ours: predictLightgbm, 'pixel by pixel': byPixel };
  const speeds: Record<string, number[]> = { ours: [], 'pixel by pixel': [] };
  for (let round = -1; round < (short ? 3 : 7); round++) {
    for (const [name, way] of Object.entries(ways)) {
      const { cpuSeconds } = await spend(async () => way(model, rows, out));
      // The first round is for the compiler.
      if (round >= 0) speeds[name].push(pixels / 1e6 / cpuSeconds);
    }
    log(`round ${round + 1}: ${JSON.stringify(speeds)}`);
  }
  const { ours, ...peers } = Object.fromEntries(Object.entries(speeds).map(([k, v]) => [k, median(v)]));
  return result(`model of ${TREES} trees of ${LEAVES} leaves`, 'Mpx/CPU s', ours, peers);
}

/** All trees for one pixel, then the next pixel. */
function byPixel(model: LightgbmModel, rows: Float32Array, out: Float32Array): void {
  const { words, floats, roots, leaves } = model;
  for (let i = 0; i < out.length; i++) {
    const row = i * FEATURES;
    let sum = 0;
    for (const root of roots) {
      let at = root;
      while (at >= 0) at = rows[row + words[at]] <= floats[at + 1] ? words[at + 2] : words[at + 3];
      sum += leaves[~at];
    }
    out[i] = 1 / (1 + Math.exp(-sum));
  }
}

/** Numbers in [0, 1), the same every time (xorshift32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A model in LightGBM's text format: every split halves the leaf that most pixels reach, at about its middle. */
function syntheticModel(next: () => number): string {
  const header = `tree\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=${FEATURES - 1}\nobjective=binary sigmoid:1\n`;
  return header + Array.from({ length: TREES }, (_, i) => syntheticTree(i, next)).join('');
}

interface Leaf {
  share: number;
  low: number[];
  high: number[];
  /** The list and place in which its parent names it. */
  parent: [list: number[], place: number];
}

function syntheticTree(index: number, next: () => number): string {
  const [feature, threshold, left, right]: number[][] = [[], [], [], []];
  const all = { share: 1, low: Array(FEATURES).fill(0), high: Array(FEATURES).fill(1) };
  const leaves: Leaf[] = [{ ...all, parent: [[], 0] }];
  for (let node = 0; node < LEAVES - 1; node++) {
    const widest = leaves.reduce((best, { share }, i) => (share > leaves[best].share ? i : best), 0);
    const { share, low, high, parent } = leaves[widest];
    const f = Math.floor(next() * FEATURES);
    const part = 0.3 + 0.4 * next();
    const split = low[f] + part * (high[f] - low[f]);
    feature.push(f);
    threshold.push(split);
    parent[0][parent[1]] = node;
    left[node] = ~widest;
    right[node] = ~leaves.length;
    leaves[widest] = { share: share * part, low, high: high.with(f, split), parent: [left, node] };
    leaves.push({ share: share * (1 - part), low: low.with(f, split), high, parent: [right, node] });
  }
  const fields = {
    Tree: [index],
    num_leaves: [LEAVES],
    split_feature: feature,
    threshold,
    decision_type: feature.map(() => 2),
    left_child: left,
    right_child: right,
    leaf_value: leaves.map(() => next() - 0.5),
  };
  return Object.entries(fields)
    .map(([key, values]) => `${key}=${values.join(' ')}\n`)
    .join('');
}
