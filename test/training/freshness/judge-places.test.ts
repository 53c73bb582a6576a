/** The decision over all places, and the choice of those that are trained again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chooseStale,
  judgePlaces,
  type MeasuredPlace,
  withFiniteErrors,
} from '../../../src/training/freshness/judgement.js';
import { mergeDates } from '../../../src/training/freshness/measurement.js';
import { checkResults } from '../../../src/training/freshness/process.js';

const year = (from: number, errors: number[]) =>
  errors.map((error, month) => ({
    datetime: new Date(Date.UTC(from, month, 15)).toISOString(),
    error,
    patches: 100,
  }));

/** A year of known errors around `level`, and new ones that are multiples of it. */
function place(geocode: string, level: number, factors: number[], more: Partial<MeasuredPlace> = {}) {
  const known = Array.from({ length: 12 }, (_, i) => level * (1 + 0.2 * Math.sin(5 * i + geocode.length)));
  return {
    ...{ collection: 's', grid: 'geohash' as const, geocode, model: `ndvi_s_g${geocode}`, version: '1' },
    ...{ known: year(2022, known), pixels: 1e5, seconds: 2 },
    fresh: year(
      2023,
      factors.map((factor) => level * factor),
    ),
    ...more,
  };
}

const statusOf = (places: MeasuredPlace[]) => judgePlaces(places).map(({ status }) => status);

test('a place whose error grows has drifted since the first date of the change', () => {
  const [changed, same] = judgePlaces([place('a', 1e-3, [1, 1.1, 9, 8]), place('b', 2e-2, [1, 0.9, 1, 1.2])]);
  assert.equal(changed!.status, 'drifted');
  assert.equal(changed!.firstDrifted, '2023-03-15T00:00:00.000Z');
  assert.ok(Math.abs(changed!.ratio! / 8 - 1) < 0.3 && changed!.dates === 4);
  assert.equal(changed!.error, 8e-3);
  assert.deepEqual([same!.status, same!.firstDrifted], ['fresh', undefined]);
});

test('a change that all places have in common is not one of a place, unless it is very large', () => {
  const hazy = Array.from({ length: 8 }, (_, i) => place(`p${i}`, 1e-3, [1, 2.4, 2.4, 2.4]));
  assert.deepEqual(new Set(statusOf(hazy)), new Set(['fresh']));
  // Without other places it would be.
  assert.deepEqual(statusOf(hazy.slice(0, 1)), ['drifted']);
  const among = statusOf([...hazy, place('x', 1e-3, [1, 12, 12, 12])]);
  assert.equal(among.at(-1), 'drifted');
  const fire = Array.from({ length: 8 }, (_, i) => place(`p${i}`, 1e-3, [1, 30, 30]));
  assert.deepEqual(new Set(statusOf(fire)), new Set(['drifted']));
});

test('haze and seasons that the known dates of all places share do not hide a change of one', () => {
  const haze = [0.4, 2.4, 0.5, 2.2, 0.4, 2, 0.45, 2.4, 0.5, 1.9, 0.4, 2.3];
  const hazy = (geocode: string, factors: number[]) => {
    const at = place(geocode, 1e-3, factors);
    return { ...at, known: at.known.map((date, i) => ({ ...date, error: date.error * haze[i]! })) };
  };
  const others = Array.from({ length: 6 }, (_, i) => hazy(`p${i}`, [1, 1.1, 0.9]));
  const statuses = statusOf([...others, hazy('x', [1, 6, 6])]);
  assert.deepEqual(statuses, [...others.map(() => 'fresh'), 'drifted']);
  // One place alone cannot tell haze from a change.
  assert.deepEqual(statusOf([hazy('x', [1, 6, 6])]), ['fresh']);
});

test('constant ground, whose promised error is 0, is fresh as long as its error is 0', () => {
  assert.deepEqual(statusOf([place('a', 0, [0, 0, 0])]), ['fresh']);
  const changed = place('a', 0, [], { fresh: year(2023, [0, 1e-3]) });
  const [judged] = judgePlaces([changed]);
  assert.equal(judged!.status, 'drifted');
  assert.ok(Number.isFinite(judged!.ratio!));
});

test('the decision does not depend on the order of the places, nor on how nodes divide them', () => {
  const places = Array.from({ length: 9 }, (_, i) => place(`p${i}`, 10 ** -(1 + (i % 4)), [1, 1 + i, 1 + i]));
  const key = (one: { geocode: string }) => one.geocode;
  const judged = judgePlaces(places).sort((a, b) => (key(a) < key(b) ? -1 : 1));
  const reversed = judgePlaces(places.toReversed()).sort((a, b) => (key(a) < key(b) ? -1 : 1));
  assert.deepEqual(reversed, judged);
  const part = (some: MeasuredPlace[]) => ({ places: some, without: 1 });
  assert.deepEqual(checkResults([part(places.slice(4)), part(places.slice(0, 4))]), {
    ...checkResults([part(places)]),
    without: 2,
  });
});

test('places that cannot be judged say why; the worst places come first', () => {
  const results = checkResults([
    {
      places: [
        place('a', 1e-3, [1]),
        place('b', 1e-3, [], { unknown: 'its model is damaged' }),
        place('c', 1e-3, []),
        place('d', 1e-3, [50, 50]),
        place('e', 1e-3, [9, 9]),
        place('f', 1e-3, [1], { known: [] }),
      ],
      without: 0,
    },
  ]);
  assert.deepEqual([results.fresh, results.drifted, results.unknown], [1, 2, 3]);
  assert.deepEqual(
    results.places.map(({ geocode }) => geocode),
    ['d', 'e', 'b', 'c', 'f', 'a'],
  );
  assert.match(results.places[2]!.reason!, /damaged/);
  assert.match(results.places[3]!.reason!, /enough clear ground/);
});

test('a place whose model predicts infinity is unknown, and says for which date', () => {
  const fine = place('a', 1e-3, [1]);
  assert.equal(withFiniteErrors(fine), fine);
  const [judged] = judgePlaces([withFiniteErrors(place('a', 1e-3, [1, Infinity]))]);
  assert.equal(judged!.status, 'unknown');
  assert.match(judged!.reason!, /2023-.* are not finite/);
});

test('dates with the same time are one date', () => {
  const datetime = '2023-05-01T10:00:00.000Z';
  const early = { datetime: '2023-04-01T10:00:00.000Z', error: 1, patches: 5 };
  assert.deepEqual(
    mergeDates([{ datetime, error: 2, patches: 10 }, early, { datetime, error: 5, patches: 20 }]),
    [early, { datetime, error: 4, patches: 30 }],
  );
  const trained = { datetime, error: 3, patches: 10, trained: true } as const;
  assert.deepEqual(mergeDates([trained, early, { datetime, error: 2, patches: 10 }]), [
    early,
    trained,
    { datetime, error: 2, patches: 10 },
  ]);
});

test('held-out and trained ground have charts of their own, and the training flatters only its own ground', () => {
  const on = (trained: true | undefined, level: number, factors: number[]) => {
    const { known, fresh } = place('a', level, factors);
    const dates = (list: typeof known) => list.map((date) => ({ ...date, ...(trained && { trained }) }));
    return { known: dates(known), fresh: dates(fresh) };
  };
  const judge = (heldOut: number[], trained: number[]) => {
    // Errors on trained ground are a fifth of those on held-out ground.
    const [out, seen] = [on(undefined, 5e-3, heldOut), on(true, 1e-3, trained)];
    const both = { known: [...out.known, ...seen.known], fresh: [...out.fresh, ...seen.fresh] };
    return judgePlaces([place('a', 1, [], both)])[0]!;
  };
  for (const [heldOut, trained, status, error] of [
    [[1, 1, 1], [1, 1, 1], 'fresh', 5e-3],
    // The training itself explains a factor of 1.35 on its own ground.
    [[1, 1, 1], [1.9, 1.9, 1.9], 'fresh', 5e-3],
    [[1.9, 1.9, 1.9], [1, 1, 1], 'drifted', 9.5e-3],
    [[1, 1, 1], [9, 9, 9], 'drifted', 9e-3],
    [[4, 4, 4], [9, 9, 9], 'drifted', 9e-3],
    [[9, 9, 9], [4, 4, 4], 'drifted', 4.5e-2],
    [[], [9, 9, 9], 'drifted', 9e-3],
    [[9, 9, 9], [], 'drifted', 4.5e-2],
  ] as const) {
    const judged = judge([...heldOut], [...trained]);
    assert.equal(judged.status, status, `${heldOut}, ${trained}`);
    assert.ok(Math.abs(judged.error! / error - 1) < 1e-9, `${judged.error} ${error}`);
    assert.equal(judged.dates, 3);
  }
  const apart = place('a', 1e-3, [], {
    known: on(true, 1e-3, []).known,
    fresh: on(undefined, 1e-3, [1]).fresh,
  });
  assert.match(judgePlaces([apart])[0]!.reason!, /ground in common/);
});

test('the budget buys the largest gain for each second, and never more seconds', () => {
  const judged = judgePlaces([
    place('cheap', 1e-3, [9, 9], { seconds: 1 }),
    place('dear', 1e-3, [9, 9], { seconds: 10 }),
    place('worse', 1e-2, [9, 9], { seconds: 2 }),
    place('same', 1e-3, [1, 1]),
    place('odd', 1e-3, [], { unknown: 'why' }),
  ]);
  const chosen = (budget?: number) => chooseStale(judged, budget).chosen.map(({ geocode }) => geocode);
  assert.deepEqual(chosen(), ['worse', 'cheap', 'dear']);
  assert.deepEqual(chosen(0), []);
  assert.deepEqual(chosen(2.5), ['worse']);
  assert.deepEqual(chosen(3), ['worse', 'cheap']);
  assert.deepEqual(chosen(1.5), ['cheap']);
  const { leftOut } = chooseStale(judged, 3);
  assert.deepEqual(
    leftOut.map(({ geocode }) => geocode),
    ['dear', 'odd', 'same'],
  );
  assert.match(
    leftOut[0]!.reason,
    /about 10\.0 s, and 0\.0 s of the budget of 3 s .* budget of 13 s includes/,
  );
  assert.match(leftOut[1]!.reason, /unknown: why/);
});

test('the budget counts the passes that the training will take', () => {
  const adapted = { seconds: 1, passes: 15 };
  const judged = judgePlaces([
    place('a', 1e-3, [9, 9], adapted),
    place('b', 3e-3, [9, 9], adapted),
    place('c', 2e-3, [9, 9], { seconds: 1, passes: 30 }),
    // An older node does not report the passes.
    place('d', 9e-3, [9, 9], { seconds: 1 }),
  ]);
  const { chosen, leftOut, seconds } = chooseStale(judged, 3, 45);
  assert.deepEqual([chosen.map(({ geocode }) => geocode), seconds], [['d', 'c'], 2.5]);
  assert.deepEqual(
    leftOut.map(({ geocode, seconds, budget }) => [geocode, seconds, budget]),
    [
      ['b', 3, 5.5],
      ['a', 3, 8.5],
    ],
  );
  assert.equal(chooseStale(judged, 5.5, 45).chosen.length, 3);
});
