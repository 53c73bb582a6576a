/** Linear candidates from sums, against the samples themselves, and the rule that chooses among candidates. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  CANDIDATES,
  type Candidate,
  chooseRidge,
  fitLinear,
  joinStatistics,
  linearCandidates,
  meanOf,
  type PlaceStatistics,
  planeSets,
  simplestCandidate,
} from '../../../src/training/candidates.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { historyLayout, inputPlanes, withHistory } from '../../../src/training/models/spec.js';
import {
  linearError,
  pickFeatures,
  ridge,
  type SufficientStatistics,
  sampleStatistics,
} from '../../../src/training/ridge-regression.js';
import { randomStream } from '../../../src/utils/random.js';

const runs = { seed: 42, numRuns: 100 };

interface Rows {
  x: number[][];
  y: number[];
}

const sumsOf = ({ x, y }: Rows): SufficientStatistics =>
  sampleStatistics({ count: x.length, features: Float32Array.from(x.flat()), targets: Float32Array.from(y) });

const rowsOf = (features: number, least: number) =>
  fc
    .array(
      fc.tuple(
        fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: features, maxLength: features }),
        fc.double({ min: -1, max: 1, noNaN: true }),
      ),
      { minLength: least, maxLength: 30 },
    )
    .map(
      (rows): Rows => ({ x: rows.map(([x]) => x.map(Math.fround)), y: rows.map(([, y]) => Math.fround(y)) }),
    );

const predict = (weights: readonly number[], bias: number, x: readonly number[]) =>
  weights.reduce((sum, weight, f) => sum + weight * x[f]!, bias);

describe('a ridge regression towards given weights', () => {
  it('minimises the squared errors plus the penalty on the distance from the weights', () => {
    const towards = [0.7, 0, -0.2];
    fc.assert(
      fc.property(rowsOf(3, 5), fc.double({ min: 0.01, max: 50, noNaN: true }), (rows, lambda) => {
        const { weights, bias } = ridge(sumsOf(rows), lambda, towards);
        const deviation = [0, 1, 2].map((f) => {
          const values = rows.x.map((x) => x[f]!);
          return Math.sqrt(meanOf(values.map((value) => (value - meanOf(values)) ** 2)));
        });
        const cost = (w: readonly number[], b: number) =>
          rows.x.reduce((sum, x, i) => sum + (rows.y[i]! - predict(w, b, x)) ** 2, 0) +
          lambda * w.reduce((sum, weight, f) => sum + (deviation[f]! * (weight - towards[f]!)) ** 2, 0);
        const least = cost(weights[0]!, bias[0]!);
        // The cost is convex: no step in any direction may lower it.
        for (const step of [1e-3, -1e-3]) {
          for (const f of [0, 1, 2])
            assert.ok(cost(weights[0]!.with(f, weights[0]![f]! + step), bias[0]!) >= least - 1e-7);
          assert.ok(cost(weights[0]!, bias[0]! + step) >= least - 1e-7);
        }
      }),
      runs,
    );
  });

  it('leaves the weights with a large penalty', () => {
    const rows = { x: [[1, 0], [0, 1], [2, 1], [1, 3]], y: [0.1, 0.5, -0.3, 0.2] }; // biome-ignore format: rows
    const { weights } = ridge(sumsOf(rows), 1e12, [1, -1]);
    assert.ok(Math.abs(weights[0]![0]! - 1) < 1e-6 && Math.abs(weights[0]![1]! + 1) < 1e-6);
  });
});

describe('sums of samples', () => {
  it('give the error of a linear model, for some or all of the features', () => {
    const model = fc.record({
      w: fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: 2, maxLength: 2 }),
      b: fc.double({ min: -1, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(rowsOf(4, 1), model, ({ x, y }, { w, b }) => {
        const picked = [3, 1];
        const expected = meanOf(
          x.map(
            (row, i) =>
              (y[i]! -
                predict(
                  w,
                  b,
                  picked.map((f) => row[f]!),
                )) **
              2,
          ),
        );
        const error = linearError(pickFeatures(sumsOf({ x, y }), picked), { weights: [w], bias: [b] });
        assert.ok(Math.abs(error - expected) < 1e-6 * Math.max(1, expected));
      }),
      runs,
    );
  });

  it('of places join by day as the samples of all do', () => {
    const place = (days: string[], rows: Rows[], readsHistory = true): PlaceStatistics => {
      const all = sumsOf({ x: rows.flatMap(({ x }) => x), y: rows.flatMap(({ y }) => y) });
      const folds = days.map((day, i) => {
        const others = rows.filter((_, k) => k !== i);
        const train = sumsOf({ x: others.flatMap(({ x }) => x), y: others.flatMap(({ y }) => y) });
        return { day, train, scored: sumsOf(rows[i]!) };
      });
      return { folds, readsHistory, withHistory: all, all };
    };
    const near = (a: SufficientStatistics, b: SufficientStatistics) => {
      const flat = (sums: SufficientStatistics) => [
        sums.count,
        ...sums.x,
        ...sums.xx.flat(),
        ...sums.y,
        ...sums.yy,
      ];
      flat(a).forEach((value, i) => {
        assert.ok(Math.abs(value - flat(b)[i]!) < 1e-4);
      });
    };
    fc.assert(
      fc.property(rowsOf(2, 2), rowsOf(2, 2), rowsOf(2, 2), rowsOf(2, 2), (a, b, c, d) => {
        const joined = joinStatistics([place(['1', '2'], [a, b]), place(['2', '3'], [c, d])]);
        const joinRows = (...all: Rows[]) =>
          sumsOf({ x: all.flatMap(({ x }) => x), y: all.flatMap(({ y }) => y) });
        assert.deepEqual(
          joined.folds.map(({ day }) => day),
          ['1', '2', '3'],
        );
        near(joined.folds[0]!.train, joinRows(b, c, d));
        near(joined.folds[1]!.train, joinRows(a, d));
        near(joined.folds[1]!.scored, joinRows(b, c));
        near(joined.folds[2]!.train, joinRows(a, b, c));
        near(joined.all, joinRows(a, b, c, d));
        // A place of two dates has no history without one of them.
        const pair = place(['1', '2'], [a, b], false);
        const mixed = joinStatistics([pair, place(['2', '3'], [c, d])]);
        assert.ok(mixed.readsHistory);
        near(mixed.folds[0]!.train, joinRows(c, d));
        near(mixed.folds[1]!.train, joinRows(d));
        near(mixed.folds[1]!.scored, joinRows(b, c));
        const pairs = joinStatistics([pair, place(['2', '3'], [c, d], false)]);
        assert.ok(!pairs.readsHistory);
        near(pairs.folds[1]!.train, joinRows(a, d));
      }),
      { seed: 42, numRuns: 30 },
    );
  });
});

describe('the linear candidates of a place', () => {
  const spec = withHistory(getModelSpec('ndvi'));
  const planes = inputPlanes(spec);
  const history = spec.inputs.length + historyLayout(spec).mean;
  /** Days on which the target is the history plus a share of the first band, and noise. */
  const folds = (share: number, seed: number) => {
    const { next } = randomStream(seed);
    const day = (): Rows => {
      const x = Array.from({ length: 60 }, () => Array.from({ length: planes }, next));
      return { x, y: x.map((row) => row[history]! + share * row[0]! + 0.05 * (next() - 0.5)) };
    };
    const days = Array.from({ length: 6 }, day);
    const all = days.map((own, i) => {
      const others = days.filter((_, k) => k !== i);
      const train = { x: others.flatMap(({ x }) => x), y: others.flatMap(({ y }) => y) };
      return { day: String(i), train: sumsOf(train), scored: sumsOf(own) };
    });
    return { folds: all, readsHistory: true };
  };

  it('are the history where it says everything, and the ridge regression where colours add to it', () => {
    const served = (share: number) => {
      const own = folds(share, 5);
      return simplestCandidate(linearCandidates(spec, own.folds, chooseRidge(spec, own)));
    };
    assert.equal(served(0).name, 'history');
    const { name, error } = served(0.5);
    assert.equal(name, 'ridge');
    assert.ok(error < 0.01);
  });

  it('read only the planes of one of the sets', () => {
    const own = folds(0.5, 9);
    const settings = chooseRidge(spec, own);
    assert.ok(planeSets(spec).some((set) => String(set) === String(settings.planes)));
    const { weights } = fitLinear(spec, own.folds[0]!.train, 'ridge', settings);
    weights[0]!.forEach((weight, plane) => {
      assert.equal(weight === 0, !settings.planes.includes(plane));
    });
    const bands = chooseRidge(spec, { ...own, readsHistory: false });
    assert.deepEqual(bands.planes, planeSets(getModelSpec('ndvi'))[0]);
    const plain = getModelSpec('ndvi');
    assert.deepEqual(
      linearCandidates(plain, own.folds, chooseRidge(plain, own)).map(({ name }) => name),
      ['mean', 'ridge'],
    );
  });
});

describe('the choice among candidates', () => {
  const candidate = (name: Candidate['name'], errors: number[]): Candidate => ({
    name,
    errors,
    error: meanOf(errors),
  });
  const candidates = (groups: number, least = 2) =>
    fc
      .array(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: groups, maxLength: groups }), {
        minLength: least,
        maxLength: CANDIDATES.length,
      })
      .map((all) => all.map((errors, i) => candidate(CANDIDATES[i]!, errors)));

  it('is the best linear one, or a network beyond one standard error, from four groups on', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 4, max: 8 }).chain((groups) => candidates(groups)),
        (all) => {
          const linear = all.slice(0, 3).reduce((a, b) => (b.error < a.error ? b : a));
          const offered = [linear, ...all.slice(3)];
          const best = offered.reduce((a, b) => (b.error < a.error ? b : a));
          const isWithin = ({ errors }: Candidate) => {
            const apart = errors.map((error, i) => error - best.errors[i]!);
            const variance =
              apart.reduce((sum, one) => sum + (one - meanOf(apart)) ** 2, 0) / (apart.length - 1);
            return meanOf(apart) <= Math.sqrt(variance / apart.length);
          };
          assert.equal(simplestCandidate(all), offered.find(isWithin) ?? best);
        },
      ),
      runs,
    );
  });

  it('is a network with fewer groups only if it is better than the best linear one on each', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }).chain((groups) => candidates(groups, 4)),
        (all) => {
          const linear = all.slice(0, 3).reduce((a, b) => (b.error < a.error ? b : a));
          const best = all.reduce((a, b) => (b.error < a.error ? b : a));
          const isBetter = best.errors.every((error, i) => error < linear.errors[i]!);
          assert.equal(simplestCandidate(all), isBetter ? best : linear);
        },
      ),
      runs,
    );
  });
});
