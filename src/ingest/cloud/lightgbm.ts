/**
 * Reads and applies LightGBM models in the text format of `Booster.save_model`: gradient-boosted decision trees with numerical splits and
 * a binary objective. Other kinds of models are refused with a reason. The fields are defined by LightGBM, src/io/tree.cpp and
 * include/LightGBM/tree.h.
 */
import { openFile } from '../../raster/index.js';
import { badCloudBands, badCloudModel, cloudModelUnreadable } from '../errors.js';

export const MAX_MODEL_BYTES = 64 * 2 ** 20;

/** Missing values go left; otherwise right. */
const MISSING_LEFT = 1;
/** Zero counts as missing. */
const ZERO_IS_MISSING = 2;

/**
 * All trees, one after the other. A node is four words of one buffer: feature (integer), threshold (float), left child, right
 * child (integers). A child is the first word of a node, or ~number of a leaf. A value goes left if it is <= the threshold.
 */
export interface LightgbmModel {
  /** Values per row. */
  features: number;
  words: Int32Array;
  /** The same bytes as floats. Thresholds are rounded down to float32, which changes no comparison with a float32 value. */
  floats: Float32Array;
  /** First word of each tree's root, or ~number of its only leaf. */
  roots: Int32Array;
  /** Flags of each node: MISSING_LEFT, ZERO_IS_MISSING. */
  missing: Uint8Array;
  /** Value of each leaf, including shrinkage. */
  leaves: Float64Array;
}

type Fields = Map<string, string>;

/** Fields of a tree that affect its predictions. The file has more fields, and some are long. */
const TREE_FIELDS = new Set(
  'Tree num_leaves num_cat split_feature threshold decision_type left_child right_child leaf_value is_linear'.split(
    ' ',
  ),
);

/** Throws TW_INGEST_BAD_CLOUD_MODEL with the path and the reason. */
export function parseLightgbm(bytes: Uint8Array, path: string): LightgbmModel {
  const refuse: Refuse = (reason) => {
    throw badCloudModel(path, reason);
  };
  if (bytes.length > MAX_MODEL_BYTES) refuse(`${bytes.length} bytes are more than ${MAX_MODEL_BYTES}`);
  const { header, trees } = readSections(new TextDecoder('latin1').decode(bytes), refuse);
  const features = checkHeader(header, trees.length, refuse);
  return flattenTrees(
    trees.map((fields, i) => readTree(fields, i, features, refuse)),
    features,
  );
}

type Refuse = (reason: string) => never;

function readSections(text: string, refuse: Refuse): { header: Fields; trees: Fields[] } {
  const header: Fields = new Map();
  const trees: Fields[] = [];
  let fields = header;
  for (let from = 0, first = true; from < text.length; first = false) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end < 0 ? undefined : end).trim();
    from = end < 0 ? text.length : end + 1;
    if (first && line !== 'tree') refuse('it does not begin with the line "tree"');
    // Before version 3, the feature importances follow the trees without a line between.
    if (line === 'end of trees' || /^feature.importances:$/.test(line)) break;
    if (line === 'average_output') refuse('it is a random forest (average_output)');
    const equals = line.indexOf('=');
    if (equals < 0) continue;
    const key = line.slice(0, equals);
    if (key === 'Tree') {
      fields = new Map();
      trees.push(fields);
    }
    if (fields === header || TREE_FIELDS.has(key)) {
      if (fields.has(key)) refuse(`${key} occurs twice in ${nameOf(fields)}`);
      fields.set(key, line.slice(equals + 1));
    }
  }
  return { header, trees };
}

/** Number of features. */
function checkHeader(header: Fields, trees: number, refuse: Refuse): number {
  const objective = header.get('objective') ?? 'none';
  if (objective !== 'binary sigmoid:1') refuse(`objective ${objective} is not "binary sigmoid:1"`);
  for (const key of ['num_class', 'num_tree_per_iteration']) {
    if (integer(header, key, refuse) !== 1) refuse(`${key} is ${header.get(key)}, not 1`);
  }
  const sizes = header.get('tree_sizes')?.trim().split(' ').length;
  if (trees === 0 || (sizes !== undefined && sizes !== trees)) {
    refuse(`it has ${trees} trees, but its header lists ${sizes ?? 'none'}`);
  }
  const features = integer(header, 'max_feature_idx', refuse) + 1;
  if (features < 1 || features > 65_536) refuse(`max_feature_idx is ${features - 1}`);
  return features;
}

interface Tree {
  feature: Int32Array;
  threshold: Float64Array;
  decision: Int32Array;
  left: Int32Array;
  right: Int32Array;
  leaf: Float64Array;
}

function readTree(fields: Fields, index: number, features: number, refuse: Refuse): Tree {
  if (integer(fields, 'Tree', refuse) !== index) refuse(`Tree=${fields.get('Tree')} is not number ${index}`);
  if ((fields.get('is_linear') ?? '0') !== '0') refuse(`Tree=${index} is a linear tree`);
  if ((fields.get('num_cat') ?? '0') !== '0') refuse(`Tree=${index} has categorical splits`);
  const leaves = integer(fields, 'num_leaves', refuse);
  if (leaves === 0) refuse(`Tree=${index} has no leaves`);
  const numbers = (key: string, count: number) => {
    const words = (fields.get(key) ?? '').split(' ').filter((word) => word !== '');
    if (words.length !== count)
      refuse(`Tree=${index} has ${words.length} values of ${key} instead of ${count}`);
    return words;
  };
  const integers = (key: string, low: number, high: number) =>
    Int32Array.from(numbers(key, leaves - 1), (word) => {
      const value = /^-?\d{1,9}$/.test(word) ? Number(word) : NaN;
      return value >= low && value < high ? value : refuse(`Tree=${index} has ${key} ${word}`);
    });
  const floats = (key: string, count: number) =>
    Float64Array.from(numbers(key, count), (word) => {
      // A split of missing values from all others has the threshold inf.
      if (key === 'threshold' && word === 'inf') return Infinity;
      const value = Number(word);
      return Number.isFinite(value) ? value : refuse(`Tree=${index} has ${key} ${word}`);
    });
  const tree: Tree = {
    leaf: floats('leaf_value', leaves),
    feature: integers('split_feature', 0, features),
    threshold: floats('threshold', leaves - 1),
    decision: integers('decision_type', 0, 12),
    left: integers('left_child', -leaves, leaves - 1),
    right: integers('right_child', -leaves, leaves - 1),
  };
  if (tree.decision.some((bits) => bits & 1)) refuse(`Tree=${index} has categorical splits`);
  checkShape(tree, index, refuse);
  return tree;
}

/** Children come after their parents, so there are no cycles; each node and leaf has one parent. */
function checkShape({ left, right, leaf }: Tree, index: number, refuse: Refuse): void {
  const seen = new Uint8Array(left.length + leaf.length);
  for (const children of [left, right]) {
    for (const [parent, child] of children.entries()) {
      const place = child >= 0 ? child : left.length + ~child;
      if ((child >= 0 && child <= parent) || seen[place]++ > 0) {
        refuse(`Tree=${index} is not a tree: node ${parent} has the child ${child}`);
      }
    }
  }
}

function flattenTrees(trees: Tree[], features: number): LightgbmModel {
  const nodes = trees.reduce((sum, { left }) => sum + left.length, 0);
  const words = new Int32Array(nodes * 4);
  const floats = new Float32Array(words.buffer);
  const missing = new Uint8Array(nodes);
  const roots = new Int32Array(trees.length);
  const leaves = Float64Array.from(trees.flatMap(({ leaf }) => [...leaf]));
  let node = 0;
  let leaf = 0;
  for (const [i, { feature, threshold, decision, left, right, leaf: values }] of trees.entries()) {
    const place = (child: number) => (child >= 0 ? (node + child) * 4 : ~(leaf + ~child));
    roots[i] = place(left.length > 0 ? 0 : ~0);
    for (let k = 0; k < left.length; k++) {
      const at = (node + k) * 4;
      words[at] = feature[k];
      floats[at + 1] = roundDown(threshold[k]);
      words[at + 2] = place(left[k]);
      words[at + 3] = place(right[k]);
      missing[node + k] = missingFlags(decision[k], threshold[k]);
    }
    node += left.length;
    leaf += values.length;
  }
  return { features, words, floats, roots, missing, leaves };
}

/** decision_type: bit 1 is the default direction, bits 2-3 define missing values: none (a NaN then counts as 0), zero, NaN. */
function missingFlags(decision: number, threshold: number): number {
  const kind = decision >> 2;
  const left = kind === 0 ? threshold >= 0 : (decision & 2) !== 0;
  return (left ? MISSING_LEFT : 0) | (kind === 1 ? ZERO_IS_MISSING : 0);
}

/** The largest float32 that is not above the value. */
function roundDown(value: number): number {
  const float = new Float32Array([value]);
  if (float[0] > value) new Int32Array(float.buffer)[0] += float[0] > 0 ? -1 : 1;
  return float[0];
}

function integer(fields: Fields, key: string, refuse: Refuse): number {
  const word = fields.get(key);
  if (word === undefined || !/^\d{1,9}$/.test(word)) {
    return refuse(`${nameOf(fields)} has ${word === undefined ? 'no' : 'a bad'} ${key}`);
  }
  return Number(word);
}

function nameOf(fields: Fields): string {
  return fields.has('Tree') ? `Tree=${fields.get('Tree')}` : 'the header';
}

/** Reads the file of a model. Throws TW_INGEST_CLOUD_MODEL_UNREADABLE, and TW_INGEST_BAD_CLOUD_MODEL if it is too large. */
export async function readCloudModelFile(path: string): Promise<Buffer> {
  const file = await openFile(path).catch((error) => {
    throw cloudModelUnreadable.because(error, path, error);
  });
  try {
    const status = await file.stat();
    if (!status.isFile()) throw cloudModelUnreadable(path, 'it is a folder');
    const { size } = status;
    if (size > MAX_MODEL_BYTES) throw badCloudModel(path, `${size} bytes are more than ${MAX_MODEL_BYTES}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** LightGBM's kZeroThreshold. */
const ZERO_THRESHOLD = Math.fround(1e-35);

/**
 * Probability of class 1, 0-1, for each row. `rows` holds `model.features` values per row; NaN is a missing value. Each tree
 * processes all rows before the next tree, so that it stays in the cache.
 */
export function predictLightgbm(model: LightgbmModel, rows: Float32Array, out: Float32Array): void {
  const { features, roots, leaves } = model;
  if (rows.length !== out.length * features) {
    throw badCloudBands('the rows', rows.length, out.length * features);
  }
  const zeroIsMissing = model.missing.some((flags) => flags & ZERO_IS_MISSING);
  const holes = new Uint8Array(out.length).fill(zeroIsMissing ? 1 : 0);
  for (let k = 0; k < rows.length; k++) if (Number.isNaN(rows[k])) holes[Math.floor(k / features)] = 1;
  const sums = new Float64Array(out.length);
  for (const root of roots) {
    for (let i = 0; i < out.length; i++) {
      const row = i * features;
      const leaf = holes[i] === 0 ? leafOf(model, root, rows, row) : leafWithMissing(model, root, rows, row);
      sums[i] += leaves[leaf];
    }
  }
  for (let i = 0; i < out.length; i++) out[i] = 1 / (1 + Math.exp(-sums[i]));
}

/** The leaf of a row without missing values. */
function leafOf({ words, floats }: LightgbmModel, root: number, rows: Float32Array, row: number): number {
  let at = root;
  while (at >= 0) at = rows[row + words[at]] <= floats[at + 1] ? words[at + 2] : words[at + 3];
  return ~at;
}

function leafWithMissing(
  { words, floats, missing }: LightgbmModel,
  root: number,
  rows: Float32Array,
  row: number,
): number {
  let at = root;
  while (at >= 0) {
    const value = rows[row + words[at]];
    const flags = missing[at / 4];
    const isMissing = Number.isNaN(value) || (flags & ZERO_IS_MISSING && Math.abs(value) <= ZERO_THRESHOLD);
    const left = isMissing ? flags & MISSING_LEFT : value <= floats[at + 1];
    at = words[at + (left ? 2 : 3)];
  }
  return ~at;
}
