/**
 * `cloud`: how well cloud and shadow that a person outlined are found by reflectance, how much clear ground is called so, and
 * how fast a model of s2cloudless's size runs. The peers of the first are simpler ways; that of the model is the same work pixel by
 * pixel.
 */

import { type LightgbmModel, parseLightgbm, predictLightgbm } from '../../src/ingest/cloud/lightgbm.js';
import {
  detectCloudByReflectance,
  isPotentialCloud,
  passesBrightnessTest,
} from '../../src/ingest/cloud/reflectance.js';
import type { CloudSettings } from '../../src/ingest/cloud/shadow.js';
import { Mask } from '../../src/raster/index.js';
import {
  CLOUD_MASK_SETS,
  type ClearGround,
  type CloudMaskSet,
  cloudMaskFolder,
  hasCloudMasks,
  readClearSpectra,
  readCloudMasks,
  readCloudyScene,
  scoreCloud,
} from '../../test/support/cloud-masks.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';

const FEATURES = 10;
const TREES = 170;
const LEAVES = 770;

export async function benchCloud(options: BenchOptions): Promise<BenchResult[]> {
  if (!hasCloudMasks) options.log(`no scores: the hand-made cloud masks are not in ${cloudMaskFolder}`);
  return [...(hasCloudMasks ? await scores(options) : []), await modelSpeed(options)];
}

/** Scores on hand-drawn masks: of our settings, of those that suit the other image best, and of simpler ways. */
async function scores({ log }: BenchOptions): Promise<BenchResult[]> {
  const sets = await Promise.all(CLOUD_MASK_SETS.map(readCloudMasks));
  const tuned = sets.map(tune);
  const figures = sets.flatMap((set, i) => {
    const name = CLOUD_MASK_SETS[i];
    const theirs = tuned[1 - i];
    log(`${name}: the other image suits ${JSON.stringify(theirs)}`);
    const ways = { ...WAYS, 'tuned on the other image': (ground: ClearGround) => detect(ground, theirs) };
    return (['cloud', 'shadow'] as const).flatMap((what) => {
      const score = (codes: Uint8Array) =>
        scoreCloud(
          codes.map((code) => Number(code === Mask[what])),
          set[what],
        );
      const ours = score(detect(set));
      const peers = Object.entries(ways).map(([way, find]) => [way, score(find(set))] as const);
      return (['precision', 'recall', 'f1'] as const).map((of) =>
        result(
          `${name} ${what} ${of}`,
          'of 1',
          ours[of],
          Object.fromEntries(peers.map(([way, scores]) => [way, scores[of]])),
        ),
      );
    });
  });
  const missed = sets.map((set, i) => {
    const codes = detect(set);
    const share = (code: number) => shareOf(codes, set.shadow, code);
    const peers = {
      'not assessed': share(Mask.notAssessed),
      cloud: share(Mask.cloud),
      clear: share(Mask.clear),
    };
    return result(`${CLOUD_MASK_SETS[i]}: shadow is`, '% shadow', share(Mask.shadow), peers);
  });
  const grounds = {
    ...Object.fromEntries(sets.map((set, i) => [`clear ground of ${CLOUD_MASK_SETS[i]}`, set])),
    'EnMAP, Potsdam': await readClearSpectra(),
    'Landsat 8, clear by its mask': await readCloudyScene(),
  };
  return [
    ...figures,
    ...missed,
    ...Object.entries(grounds).flatMap(([name, ground]) => clearFigures(name, ground)),
  ];
}

/** Percent of the ground that is called cloud or shadow, and percent that is assessed. */
function clearFigures(name: string, ground: ClearGround): BenchResult[] {
  const wrong = (codes: Uint8Array) =>
    shareOf(codes, ground.clear, Mask.cloud) + shareOf(codes, ground.clear, Mask.shadow);
  const assessed = (codes: Uint8Array) => 100 - shareOf(codes, ground.clear, Mask.notAssessed);
  const ours = detect(ground);
  const ways = Object.entries(WAYS).map(([way, find]) => [way, find(ground)] as const);
  return Object.entries({ 'cloud or shadow': wrong, assessed }).map(([what, of]) =>
    result(
      `${name}: ${what}`,
      '%',
      of(ours),
      Object.fromEntries(ways.map(([way, codes]) => [way, of(codes)])),
    ),
  );
}

/** Percent of the flagged pixels that have the code. */
function shareOf(codes: Uint8Array, flags: Uint8Array, code: number): number {
  const flagged = flags.reduce((sum, is) => sum + is, 0);
  return (100 * codes.reduce((sum, of, at) => sum + (flags[at] !== 0 && of === code ? 1 : 0), 0)) / flagged;
}

const detect = (
  { bands, valid, width, sunAzimuth }: ClearGround & { sunAzimuth?: number },
  settings?: CloudSettings,
) => detectCloudByReflectance(bands, valid, width, sunAzimuth, settings);

/** The settings with the largest sum of both F1. */
function tune(set: CloudMaskSet): CloudSettings {
  const quality = (settings: CloudSettings) => {
    const codes = detect(set, settings);
    const f1 = (what: 'cloud' | 'shadow') =>
      scoreCloud(
        codes.map((code) => Number(code === Mask[what])),
        set[what],
      ).f1;
    return f1('cloud') + f1('shadow');
  };
  const all = [0, 1, 2, 4, 8].flatMap((growth) =>
    [0.15, 0.2, 0.25, 0.3, 0.35, 0.4].map((darkness) => ({ growth, darkness })),
  );
  return all
    .map((settings) => ({ settings, quality: quality(settings) }))
    .reduce((best, next) => (next.quality > best.quality ? next : best)).settings;
}

/** Mask codes by simpler ways. */
const WAYS: Record<string, (ground: ClearGround) => Uint8Array> = {
  'the two tests alone': (ground) =>
    byPixel(ground, (...bands) => (isCloud(...bands) ? Mask.cloud : Mask.clear)),
  "Fmask's first pass alone": (ground) =>
    byPixel(ground, (...bands) => (isPotentialCloud(...bands) ? Mask.cloud : Mask.clear)),
  'brightness alone': (ground) =>
    byPixel(ground, (blue, _green, red, _nir, swir16) =>
      passesBrightnessTest(blue, red, swir16) ? Mask.cloud : Mask.clear,
    ),
  'dark pixels alone': darkPixelsAlone,
};

type PixelTest = (...bands: Parameters<typeof isPotentialCloud>) => number;

const isCloud = (...[blue, green, red, nir, swir16, swir22]: Parameters<typeof isPotentialCloud>) =>
  passesBrightnessTest(blue, red, swir16) && isPotentialCloud(blue, green, red, nir, swir16, swir22);

function byPixel({ bands, valid }: ClearGround, codeOf: PixelTest): Uint8Array {
  const { blue, green, red, nir, swir16, swir22 } = bands;
  return valid.map((is, i) =>
    is === 0 ? Mask.nodata : codeOf(blue[i], green[i], red[i], nir[i], swir16[i], swir22[i]),
  );
}

/** Shadow is ground whose infrared light is below 0.7 of the 65 % quantile of all ground without cloud. */
function darkPixelsAlone(ground: ClearGround): Uint8Array {
  const isGround = byPixel(ground, (...bands) => (isCloud(...bands) ? Mask.cloud : Mask.clear));
  const limitOf = (band: Float32Array) =>
    0.7 *
    quantile(
      band.filter((_, i) => isGround[i] === Mask.clear),
      0.65,
    );
  const nirLimit = limitOf(ground.bands.nir);
  const swirLimit = limitOf(ground.bands.swir16);
  return byPixel(ground, (...bands) =>
    isCloud(...bands) ? Mask.cloud : bands[3] < nirLimit && bands[4] < swirLimit ? Mask.shadow : Mask.clear,
  );
}

const quantile = (values: Float32Array, share: number) =>
  values.toSorted()[Math.floor(share * values.length)];

/** Random pixels are the worst case: each takes a different path through each tree. */
async function modelSpeed({ short, log }: BenchOptions): Promise<BenchResult> {
  const next = random(1);
  const model = parseLightgbm(Buffer.from(syntheticModel(next)), 'synthetic');
  const pixels = short ? 4096 : 32_768;
  const rows = Float32Array.from({ length: pixels * FEATURES }, next);
  const out = new Float32Array(pixels);
  const ways = { ours: predictLightgbm, 'pixel by pixel': predictByPixel };
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
function predictByPixel(model: LightgbmModel, rows: Float32Array, out: Float32Array): void {
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
