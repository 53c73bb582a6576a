import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import {
  MAX_MODEL_BYTES,
  parseLightgbm,
  predictLightgbm,
  readCloudModelFile,
} from '../../src/ingest/cloud/lightgbm.js';
import { tempFolder } from '../support/temp.js';

const folder = new URL('../../../test/fixtures/ingest/lightgbm/', import.meta.url);
const read = (name: string) => readFileSync(fileURLToPath(new URL(name, folder)));
const bytes = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64')).buffer;

const expected = JSON.parse(read('expected.json').toString());
const rows = new Float32Array(bytes(expected.rows));
const text = read('missing-nan.txt').toString();

const parse = (model: string) => parseLightgbm(Buffer.from(model), 'model.txt');

for (const [name, base64] of Object.entries<string>(expected.probabilities)) {
  test(`predictions agree with LightGBM: ${name}`, () => {
    const wanted = new Float64Array(bytes(base64));
    const model = parseLightgbm(read(`${name}.txt`), name);
    assert.equal(model.features, expected.features);
    const all = new Float32Array(wanted.length);
    predictLightgbm(model, rows, all);
    for (const [i, value] of wanted.entries()) {
      assert.ok(Math.abs(all[i] - value) < 1e-7, `row ${i}: ${all[i]} instead of ${value}`);
    }
    // In blocks with no missing value the other way is taken.
    const whole = [...wanted.keys()]
      .filter((i) => !rows.subarray(i * 10, i * 10 + 10).some(Number.isNaN))
      .slice(0, 333);
    assert.equal(whole.length, 333);
    const out = new Float32Array(whole.length);
    predictLightgbm(
      model,
      Float32Array.from(whole.flatMap((i) => [...rows.subarray(i * 10, i * 10 + 10)])),
      out,
    );
    for (const [k, i] of whole.entries()) assert.equal(out[k], all[i]);
  });
}

test('a model that is not a file of reasonable size is refused before it is read', async (t) => {
  const folder = await tempFolder(t);
  const unreadable = { code: 'TW_INGEST_CLOUD_MODEL_UNREADABLE' };
  await assert.rejects(readCloudModelFile(join(folder, 'none')), unreadable);
  await assert.rejects(readCloudModelFile(folder), unreadable);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  await assert.rejects(readCloudModelFile(pipe), unreadable);
  const large = join(folder, 'large.txt');
  await writeFile(large, '');
  await truncate(large, 1e12);
  await assert.rejects(readCloudModelFile(large), { code: 'TW_INGEST_BAD_CLOUD_MODEL' });
});

test('another kind of file is refused with the reason', () => {
  const refusals: [(text: string) => string, RegExp][] = [
    [() => '', /objective none is not/],
    [() => '{"name": "tree"}', /does not begin with the line "tree"/],
    [(t) => t.replace('binary sigmoid:1', 'regression'), /objective regression is not/],
    [(t) => t.replace('binary sigmoid:1', 'binary sigmoid:2'), /objective binary sigmoid:2 is not/],
    [(t) => t.replace(/objective=.*\n/, ''), /objective none is not/],
    [(t) => t.replace('num_class=1', 'num_class=3'), /num_class is 3/],
    [(t) => t.replace('num_tree_per_iteration=1', 'num_tree_per_iteration=3'), /num_tree_per_iteration is 3/],
    [(t) => t.replace('objective=', 'average_output\nobjective='), /random forest/],
    [(t) => t.replace('is_linear=0', 'is_linear=1'), /Tree=0 is a linear tree/],
    [(t) => t.replace('num_cat=0', 'num_cat=1'), /Tree=0 has categorical splits/],
    [(t) => t.replace('decision_type=8', 'decision_type=9'), /Tree=0 has categorical splits/],
    [(t) => t.replace('decision_type=8', 'decision_type=12'), /Tree=0 has decision_type 12/],
    [(t) => t.replace('max_feature_idx=9', 'max_feature_idx=2'), /Tree=0 has split_feature/],
    [(t) => t.replace('max_feature_idx=9', 'max_feature_idx=999999'), /max_feature_idx is 999999/],
    [(t) => t.replace('num_leaves=15', 'num_leaves=999999999'), /Tree=0 has 15 values of leaf_value instead/],
    [(t) => t.replace('num_leaves=15', 'num_leaves=0'), /Tree=0 has no leaves/],
    [(t) => t.replace('num_leaves=15', 'num_leaves=1e1'), /Tree=0 has a bad num_leaves/],
    [(t) => t.replace('Tree=1', 'Tree=2'), /Tree=2 is not number 1/],
    [(t) => t.replace(/left_child=.*\n/, ''), /Tree=0 has 0 values of left_child/],
    [(t) => t.replace(/left_child=\S+/, 'left_child=0'), /Tree=0 is not a tree: node 0 has the child 0/],
    [(t) => t.replace(/left_child=\S+/, 'left_child=14'), /Tree=0 has left_child 14/],
    [(t) => t.replace(/left_child=\S+/, 'left_child=-16'), /Tree=0 has left_child -16/],
    [(t) => t.replace(/left_child=\S+/, 'left_child=-1'), /Tree=0 is not a tree/],
    [(t) => t.replace(/threshold=\S+/, 'threshold=nan'), /Tree=0 has threshold nan/],
    [(t) => t.replace(/leaf_value=\S+/, 'leaf_value=inf'), /Tree=0 has leaf_value inf/],
    [(t) => t.replace('num_leaves=15', 'num_leaves=15\nnum_leaves=15'), /num_leaves occurs twice in Tree=0/],
    [(t) => t.slice(0, t.indexOf('Tree=5')), /it has 5 trees, but its header lists 8/],
    [(t) => t.slice(0, t.indexOf('leaf_value')), /Tree=0 has 0 values of leaf_value|header lists/],
  ];
  for (const [change, message] of refusals) {
    const changed = change(text);
    assert.notEqual(changed, text);
    assert.throws(
      () => parse(changed),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'TW_INGEST_BAD_CLOUD_MODEL');
        assert.match(error.message, message);
        return error.message.startsWith('model.txt: ');
      },
      String(change),
    );
  }
  assert.throws(() => parseLightgbm(new Uint8Array(MAX_MODEL_BYTES + 1), 'big'), /67108865 bytes are more/);
});

test('a damaged model is refused or still predicts probabilities', () => {
  const row = rows.slice(0, 10);
  const damage = fc.tuple(fc.nat(text.length - 1), fc.nat(20), fc.string({ maxLength: 5 }));
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 3 }), (damages) => {
      let changed = text;
      for (const [at, length, put] of damages)
        changed = changed.slice(0, at) + put + changed.slice(at + length);
      const out = new Float32Array(1);
      try {
        predictLightgbm(parse(changed), row, out);
      } catch (error) {
        const { code } = error as { code: string };
        // A model with another number of features needs other rows.
        assert.match(code, /^TW_INGEST_BAD_CLOUD_(MODEL|BANDS)$/, String(error));
        return;
      }
      assert.ok(out[0] >= 0 && out[0] <= 1);
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('the format of older versions is read: no line after the trees, no list of sizes', () => {
  const older = text
    .replace('version=v4', 'version=v2')
    .replace(/tree_sizes=.*\n/, '')
    .replace(/^(num_cat|is_linear)=.*\n/gm, '')
    .replace('end of trees\n', '')
    .replace('feature_importances:', 'feature importances:');
  assert.deepEqual(parse(older), parse(text));
  assert.deepEqual(parse(text.replaceAll('\n', '\r\n')), parse(text));
});
