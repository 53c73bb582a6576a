/** Folds of ground, the scores on them, and the choice of a classifier. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync, inflateSync } from 'node:zlib';
import { gridByName } from '../../src/grid/index.js';
import {
  accuracyScores,
  type CrossValidated,
  reportedScores,
  selectCandidate,
} from '../../src/hyperspectral/classification/selection.js';
import {
  NO_TEMPERATURE,
  noScores,
  SCORE_UNIT,
  TEMPERATURES,
} from '../../src/hyperspectral/dense-training.js';
import {
  ALL,
  drawFolds,
  FOLDS,
  foldOf,
  GAP_PX,
  mayTrain,
  type SquareCounts,
} from '../../src/hyperspectral/labelled-pixels.js';
import { random } from '../raster/images.js';
import { classAt, labelledGround, GROUND_SIDE as SIDE } from './labelled-ground.js';

/** Squares of 8 pixels, of which each has pixels of some classes; class 9 lies in a single one. */
function randomCounts(seed: number, side: number): SquareCounts {
  const next = random(seed);
  const counts: SquareCounts = new Map();
  for (let x = -side; x < side; x++)
    for (let y = -side; y < side; y++) {
      const codes = [1, 2, 3].filter((code) => next() < 0.5 / code);
      if (codes.length > 0)
        counts.set(`${x} ${y}`, new Map(codes.map((code) => [code, 1 + Math.floor(60 * next())])));
    }
  const [first] = counts.keys();
  counts.get(first!)!.set(9, 5);
  return counts;
}

const pixelsOf = (counts: SquareCounts) =>
  [...counts.values()].flatMap((codes) => [...codes.values()]).reduce((sum, pixels) => sum + pixels, 0);

test('each class lies in as many folds as it can for any seed, and no pixel is lost', () => {
  const drawn = new Set<string>();
  for (let seed = 1; seed <= 60; seed++) {
    const counts = randomCounts(seed, 1 + (seed % 12));
    const of = { pixel: [0.5, 0.25], split: 'place', seed } as const;
    const folds = drawFolds(counts, of);
    assert.deepEqual(drawFolds(new Map([...counts].reverse()), of).squares, folds.squares);
    assert.equal(pixelsOf(folds.counts), pixelsOf(counts));
    assert.deepEqual([...folds.squares.keys()].sort(), [...folds.counts.keys()].sort());
    assert.deepEqual(folds.size, [folds.side * 0.5, folds.side * 0.25]);
    if (folds.side > 8) assert.ok(folds.squares.size >= FOLDS);
    const found = [1, 2, 3, 9].map((code) => {
      const own = [...folds.counts].filter(([, codes]) => codes.has(code));
      return { squares: own.length, used: new Set(own.map(([key]) => folds.squares.get(key)!.fold)).size };
    });
    const rarest = Math.min(...found.slice(0, 3).map(({ squares }) => squares));
    // Squares of rarer classes are placed first, and may crowd the squares that also have this class.
    for (const { squares, used } of found) assert.ok(used >= Math.min(2, squares), `seed ${seed}`);
    const first = found.filter(({ squares }) => squares === rarest).map(({ used }) => used);
    assert.ok(Math.max(...first) === Math.min(FOLDS, rarest), `seed ${seed}: ${first} of ${rarest}`);
    drawn.add(
      [...drawFolds(randomCounts(5, 8), { ...of, seed }).squares.values()].map(({ fold }) => fold).join(),
    );
  }
  assert.ok(drawn.size > 50, `${drawn.size} different drawings`);
});

test('a pixel is near the folds of all squares within the gap, also those of other cells', () => {
  const [width, height] = [70, 90];
  const cells = ['u33d', 'u336'].map((geocode) => ({ grid: 'geohash', geocode }) as const);
  const { west, east, south, north } = gridByName('geohash').bounds('u33d');
  const pixel = [(east - west) / width, (north - south) / height];
  const squareAt = (x: number, y: number, side: number) =>
    `${Math.floor(x / (side * pixel[0]!))} ${Math.floor(y / (side * pixel[1]!))}`;
  const positions = cells.flatMap((cell) => {
    const { west, north } = gridByName('geohash').bounds(cell.geocode);
    return Array.from({ length: width * height }, (_, i) => {
      const [column, row] = [i % width, Math.floor(i / width)];
      const [x, y] = [west + (column + 0.5) * pixel[0]!, north - (row + 0.5) * pixel[1]!];
      return { cell, column, row, x, y };
    });
  });
  const counts: SquareCounts = new Map(
    positions.map(({ x, y }) => [squareAt(x, y, 8), new Map([[1, 1]])] as const),
  );
  for (const seed of [1, 2, 3]) {
    const folds = drawFolds(counts, { pixel, split: 'place', seed });
    assert.equal(folds.side, 32);
    const at = new Map(cells.map((cell) => [cell, foldOf(cell, { width, height }, folds)]));
    let apart = 0;
    for (const { cell, column, row, x, y } of positions) {
      const found = at.get(cell)!(column, row);
      assert.equal(found.fold, folds.squares.get(squareAt(x, y, 32))!.fold);
      let near = 0;
      for (let i = -GAP_PX; i <= GAP_PX; i++)
        for (let j = -GAP_PX; j <= GAP_PX; j++) {
          const other = folds.squares.get(squareAt(x + i * pixel[0]!, y + j * pixel[1]!, 32));
          if (other) near |= 1 << other.fold;
        }
      assert.equal(found.near, near);
      assert.ok(mayTrain(found.near, ALL) && !mayTrain(found.near, found.fold));
      if (near === 1 << found.fold) apart++;
    }
    assert.ok(apart > positions.length / 3 && apart < positions.length);
    // Random pixels: no gap, and about as many in each fold.
    const pixels = foldOf(cells[0]!, { width, height }, { ...folds, split: 'random' });
    const sizes = new Array<number>(FOLDS).fill(0);
    for (let i = 0; i < width * height; i++) {
      const { fold, near } = pixels(i % width, Math.floor(i / width));
      assert.equal(near, 1 << fold);
      sizes[fold]!++;
    }
    assert.ok(
      sizes.every((size) => Math.abs(size / (width * height) - 1 / FOLDS) < 0.03),
      `${sizes}`,
    );
  }
});

test('scores agree with scikit-learn 1.9.1, however the pixels lie in squares', () => {
  const matrix = [
    [40, 3, 2, 0],
    [5, 21, 4, 0],
    [1, 6, 30, 2],
    [0, 1, 0, 4],
  ];
  // accuracy_score, cohen_kappa_score, balanced_accuracy_score, and f1_score, recall_score and precision_score with average=None.
  const [oa, kappa, aa] = [0.7983193277310925, 0.70638429114835, 0.7895299145299146];
  const f1 = [0.8791208791208791, 0.6885245901639344, 0.8, 0.7272727272727273];
  const recall = [0.8888888888888888, 0.7, 0.7692307692307693, 0.8];
  const precision = [0.8695652173913043, 0.6774193548387096, 0.8333333333333334, 0.6666666666666666];
  const next = random(3);
  for (const count of [1, 5, 6, 30]) {
    const squares = Array.from({ length: count }, () => new Map<number, number>());
    for (const [at, pixels] of matrix.flat().entries())
      for (let i = 0; i < pixels; i++) {
        const own = squares[Math.floor(count * next())]!;
        own.set(at, (own.get(at) ?? 0) + 1);
      }
    const found = accuracyScores(squares, [2, 3, 5, 7]);
    assert.deepEqual(found.confusion, matrix);
    const values = [
      found.oa,
      found.kappa,
      found.aa,
      ...found.classes.flatMap((c) => [c.f1, c.recall, c.precision]),
    ];
    const truth = [oa, kappa, aa, ...f1.flatMap((value, c) => [value, recall[c]!, precision[c]!])];
    for (const [i, value] of values.entries()) assert.ok(Math.abs(value - truth[i]!) < 1e-12);
    assert.equal(found.oaInterval !== undefined, count >= 6);
    if (!found.oaInterval) continue;
    const [low, high] = found.oaInterval;
    assert.ok(low < oa && oa < high && found.kappaInterval![0] < kappa && kappa < found.kappaInterval![1]);
    const rare = found.classes[3]!;
    assert.equal(rare.f1Interval, undefined, `${rare.squares} squares`);
    assert.ok(found.classes[0]!.squares < 6 || found.classes[0]!.f1Interval![0] < f1[0]!);
  }
});

type Loss = (square: number, temperature: number) => number;

/** A classifier with ten pixels in each of 15 squares, of which three belong to each fold. `right`: correct pixels. */
function scored(
  classifier: CrossValidated['classifier'],
  strength: number,
  lossOf: Loss,
  right = 8,
): CrossValidated {
  const folds = Array.from({ length: FOLDS }, (_, fold) => {
    const scores = noScores();
    for (const square of [fold, fold + 5, fold + 10])
      scores.squares.set(square, {
        table: new Map([
          [0, right],
          [1, 10 - right],
        ]),
        losses: Float64Array.from(TEMPERATURES, (t) => Math.round((10 * lossOf(square, t)) / SCORE_UNIT)),
      });
    return scores;
  });
  return { classifier, strength, folds };
}

const noise = (square: number) => Math.sin(7 * square + 1);

test('the simplest classifier within one standard error of the best serves, the error being that of paired differences', () => {
  const same = (level: number) => (square: number) => 1 + 0.5 * noise(square) + level;
  const noisy = (level: number) => (square: number) => 1 - 0.5 * noise(square) + level;
  const chosenOf = (...all: CrossValidated[]) => selectCandidate(all, undefined).chosen.classifier;
  // Differences that all squares share count, however small; noisy ones do not.
  assert.equal(chosenOf(scored('lda', 0.1, same(0.01)), scored('mlp', 0.01, same(0))), 'mlp');
  assert.equal(chosenOf(scored('lda', 0.1, noisy(0.05)), scored('mlp', 0.01, same(0))), 'lda');
  assert.equal(chosenOf(scored('lda', 0.1, noisy(0.6)), scored('mlp', 0.01, same(0))), 'mlp');
  assert.equal(chosenOf(scored('lda', 0.1, same(0)), scored('logistic', 0.01, same(0))), 'lda');
  const requested = selectCandidate([scored('lda', 0.1, same(0)), scored('mlp', 0.01, same(1))], 'mlp');
  assert.equal(requested.chosen.classifier, 'mlp');
  assert.ok(requested.chosen.excess > 0.99 && requested.candidates[0]!.excess === 0);
  // The penalties of a perceptron likewise: the stronger one comes first.
  const penalties = [scored('mlp', 1e-2, noisy(0.05)), scored('mlp', 1e-3, same(0))];
  assert.equal(selectCandidate(penalties, undefined).chosen.strength, 1e-2);
  const clear = [scored('mlp', 1e-2, same(0.01)), scored('mlp', 1e-3, same(0))];
  assert.equal(selectCandidate(clear, undefined).chosen.strength, 1e-3);
});

test('the scores of a fold are those of the classifier that the other folds choose', () => {
  // The perceptron is far better in fold 0 only: all folds but fold 0 itself are scored by it.
  const all = [
    scored('lda', 0.1, () => 1, 5),
    scored('mlp', 0.01, (square) => (square % 5 === 0 ? 0.01 : 1.01 + 0.001 * noise(square)), 9),
  ];
  const { confusion } = reportedScores(all, [1, 2], undefined).scores;
  assert.deepEqual(confusion[0], [3 * 5 + 12 * 9, 3 * 5 + 12 * 1]);
  assert.deepEqual(reportedScores(all, [1, 2], 'mlp').scores.confusion[0], [15 * 9, 15 * 1]);
});

test('a temperature serves only if it helps on ground that did not choose it', () => {
  const temperatureOf = (lossOf: Loss) =>
    selectCandidate([scored('lda', 0.1, lossOf)], undefined).chosen.temperature;
  const gain = (t: number) => -0.3 * Math.exp(-Math.abs(Math.log2(t / 2)));
  assert.equal(
    temperatureOf((square, t) => 2 + noise(square) + gain(t)),
    2,
  );
  assert.equal(
    temperatureOf(() => 1),
    1,
  );
  // Helps some squares as much as it harms others.
  assert.equal(
    temperatureOf((square, t) => 2 + noise(square) * Math.log2(t)),
    1,
  );
  // A single fold gains.
  assert.equal(
    temperatureOf((square, t) => 2 + (square % 5 === 0 ? 5 * gain(t) : -gain(t) / 10)),
    1,
  );
  assert.equal(TEMPERATURES[NO_TEMPERATURE], 1);
});

test('a class in one square is not scored but named, for any seed', async (t) => {
  const { classify, labels } = await labelledGround(t, (column, row) => (column + row) % 3 === 0);
  const { raster } = labels;
  const codes = inflateSync(Buffer.from(raster!.codes, 'base64'));
  // Class 3 only in a corner of 10 x 10 pixels.
  for (const at of codes.keys()) if (classAt(at) === 3 && !(at % SIDE < 10 && at / SIDE < 10)) codes[at] = 0;
  const rare = { ...labels, raster: { ...raster!, codes: deflateSync(codes).toString('base64') } };
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    const { status, results, error } = await classify({ labels: rare, seed });
    assert.equal(status, 'successful', error?.message);
    assert.ok(results.oa > 0.6 && results.oaInterval![0] < results.oa, `${results.oa}`);
    assert.deepEqual(
      results.classes.map(({ code }) => code),
      [1, 2, 3],
    );
    const { squares, pixels } = results.classes[2]!;
    if (squares < 2) assert.equal(pixels, 0);
    assert.match(results.warnings.join(), /class 3: (not scored|poorly supported)/);
  }
});

test('classes whose labels may be few fields are named with their number', async (t) => {
  const { classify, labels } = await labelledGround(t, () => true);
  const { raster } = labels;
  const spread = (await classify()).results.warnings.join();
  assert.doesNotMatch(spread, /perhaps as one field/);
  const codes = inflateSync(Buffer.from(raster!.codes, 'base64'));
  for (const stripes of [2, 4]) {
    for (const at of codes.keys()) codes[at] = 1 + (Math.floor(((at % SIDE) * stripes) / SIDE) % 2);
    const striped = { ...labels, raster: { ...raster!, codes: deflateSync(codes).toString('base64') } };
    const { results } = await classify({ labels: striped });
    // Stripes of a class are near each other.
    assert.match(results.warnings.join(), /class 1 \(1\), class 2 \(1\): .* perhaps one field each/);
  }
});

test('labels in one square of 32 pixels are scored by smaller squares, with a warning', async (t) => {
  const { classify } = await labelledGround(t, (column, row) => column < 28 && row < 28);
  const { status, results, error } = await classify();
  assert.equal(status, 'successful', error?.message);
  assert.ok(results.side < 32);
  assert.match(results.warnings.join(), /squares of (8|16) x \1 pixels were used; .* overestimates/);
});

test('labels in one place are refused with advice that works', async (t) => {
  const { classify } = await labelledGround(t, (column, row) => column > 3 && column < 8 && row < 4);
  const refused = await classify();
  assert.equal(refused.error?.code, 'TW_ANALYSIS_FEW_LABELS');
  assert.match(refused.error!.message, /--split random/);
  const { status, results, error } = await classify({ split: 'random' });
  assert.equal(status, 'successful', error?.message);
  assert.equal(results.oaByPlace, undefined);
});
