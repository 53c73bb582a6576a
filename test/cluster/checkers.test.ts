/** Each rule is checked with histories that violate it, and with others that only seem to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  check,
  exactAnswers,
  exactCounts,
  exactResults,
  freshDerivations,
  fullBursts,
  type LoggedCommit,
  noFalseAbsence,
  nothingLost,
  noWayBack,
  type ReplicaContent,
  rightBytes,
  type SeenPlacement,
  sameJobs,
  sameReplicas,
  soundCopies,
  soundLog,
  upkeepFinishes,
  type Violation,
  wholePlacement,
  wholeScenes,
} from './checkers.js';
import {
  type Burst,
  type Count,
  type Derived,
  type Event,
  History,
  type JobEnd,
  type Read,
  type Seen,
  type TileRead,
  type UpkeepRun,
  type Write,
} from './history.js';
import { type FoundTile, observe } from './observe.js';

/** A write through node `a` by default. */
const write = (to: Write['to'], invoked: number, rest: Partial<Write> = {}): Write => ({
  kind: 'write',
  scene: 's',
  to,
  node: 'a',
  invoked,
  ended: invoked + 1,
  outcome: 'done',
  ...rest,
});

const unknown = { outcome: 'unknown', ended: Infinity } as const;

const read = (seen: Seen, invoked: number, rest: Partial<Read> = {}): Read => ({
  kind: 'read',
  node: 'a',
  invoked,
  ended: invoked + 1,
  partial: false,
  ...{ matched: 3, returned: 3, twice: [], scenes: { s: seen } },
  ...rest,
});

const tile = (outcome: TileRead['outcome'], invoked = 0): TileRead => ({
  ...{
    kind: 'tile',
    node: 'a',
    tile: 't',
    group: 'mask',
    scene: 's',
    delivery: 0,
    invoked,
    ended: invoked + 1,
    outcome,
  },
});

const rules = (violations: Violation[]) => violations.map(({ rule }) => rule);

test('an incomplete scene is noticed, even in a partial answer', () => {
  const half = { half: 'delivery 0 lacks 1 of 3' };
  assert.deepEqual(rules(wholeScenes([read(0, 0), read('absent', 2)])), []);
  assert.deepEqual(rules(wholeScenes([read(0, 0), read(half, 2)])), ['whole scenes']);
  assert.deepEqual(rules(wholeScenes([read(half, 2, { partial: true })])), ['whole scenes']);
});

test('a tile that is returned twice, and a count that differs from the returned tiles', () => {
  assert.deepEqual(rules(exactAnswers([read(0, 0)])), []);
  assert.deepEqual(rules(exactAnswers([read(0, 0, { twice: ['t'] })])), ['exact answers']);
  assert.deepEqual(rules(exactAnswers([read(0, 0, { matched: 4 })])), ['exact answers']);
});

test('a tile that appears twice in the result of a job', () => {
  const job = (tiles: string[]): JobEnd => ({
    kind: 'job',
    node: 'a',
    invoked: 0,
    ended: 1,
    outcome: 'done',
    tiles,
  });
  assert.deepEqual(rules(exactResults([job(['t', 'u']), job(['t'])])), []);
  assert.deepEqual(rules(exactResults([job(['t', 'u', 't'])])), ['exact results']);
});

test('a job that two nodes describe differently, or that one does not list', () => {
  const at = (node: string, ...answers: [string, string][]) => ({ node, answers: new Map(answers) });
  const [list, log] = [['/jobs', 'a'] as [string, string], ['/jobs/a/logs', 'line'] as [string, string]];
  assert.deepEqual(rules(sameJobs([])), []);
  assert.deepEqual(rules(sameJobs([at('a', list, log), at('b', log, list)])), []);
  assert.deepEqual(rules(sameJobs([at('a', list, log), at('b', list)])), ['same jobs']);
  assert.deepEqual(rules(sameJobs([at('a', list), at('b', list), at('c', list, log)])), ['same jobs']);
  assert.deepEqual(rules(sameJobs([at('a', list, log), at('b', list, ['/jobs/a/logs', 'other'])])), [
    'same jobs',
  ]);
});

test('a node returns what it has acknowledged', () => {
  assert.deepEqual(rules(noWayBack([write(0, 0)], [read(0, 2)])), []);
  assert.deepEqual(rules(noWayBack([write(0, 0)], [read('absent', 2)])), ['no way back']);
  // Not acknowledged at the time of the query, or acknowledged by another node.
  assert.deepEqual(rules(noWayBack([write(0, 0)], [read('absent', 0.5)])), []);
  assert.deepEqual(rules(noWayBack([write(0, 0)], [read('absent', 2, { node: 'b' })])), []);
});

test('a node does not take back what it has returned', () => {
  const writes = [write(0, 0), write(1, 10), write('absent', 20)];
  const at = (seen: Seen, invoked: number) => read(seen, invoked, { node: 'b' });
  assert.deepEqual(rules(noWayBack(writes, [at(0, 12), at(1, 14), at('absent', 30)])), []);
  assert.deepEqual(rules(noWayBack(writes, [at(1, 12), at(0, 14)])), ['no way back']);
  assert.deepEqual(rules(noWayBack(writes, [at('absent', 22), at('absent', 24), at(1, 26)])), []);
  // Concurrent reads may be answered in either order.
  assert.deepEqual(rules(noWayBack(writes, [at(1, 12), { ...at(0, 12.5), ended: 13.5 }])), []);
});

test('data that nobody has written yet, or that was refused, is not returned', () => {
  assert.deepEqual(rules(noWayBack([write(0, 0)], [read(1, 2)])), ['no way back']);
  assert.deepEqual(rules(noWayBack([write(0, 10)], [read(0, 2)])), ['no way back']);
  assert.deepEqual(rules(noWayBack([write(0, 0, { outcome: 'refused' })], [read(0, 2)])), ['no way back']);
});

test('a write with an unknown outcome may appear or not, but stays once it has appeared', () => {
  const writes = [write(0, 0), write(1, 10, unknown)];
  assert.deepEqual(rules(noWayBack(writes, [read(0, 20), read(1, 30), read(1, 40)])), []);
  assert.deepEqual(rules(noWayBack(writes, [read(0, 20), read(1, 30), read(0, 40)])), ['no way back']);
  assert.deepEqual(rules(nothingLost(writes, [read(0, 50)])), []);
  assert.deepEqual(rules(nothingLost(writes, [read(1, 50)])), []);
  assert.deepEqual(rules(nothingLost(writes, [read('absent', 50)])), ['nothing lost']);
});

test('in the end all nodes return what was acknowledged last, completely and equally', () => {
  const writes = [write(0, 0), write(1, 10), write(2, 20, { outcome: 'refused' })];
  const at = (node: string, seen: Seen) => read(seen, 50, { node });
  assert.deepEqual(rules(nothingLost(writes, [at('a', 1), at('b', 1)])), []);
  assert.deepEqual(rules(nothingLost(writes, [at('a', 1), at('b', 0)])), [
    'nothing lost',
    'all answer alike',
  ]);
  assert.deepEqual(rules(nothingLost(writes, [at('a', 2), at('b', 2)])), ['nothing lost', 'nothing lost']);
  assert.deepEqual(rules(nothingLost(writes, [{ ...at('a', 1), partial: true }])), ['healed']);
  const open = [write(0, 0), write(1, 10, unknown)];
  assert.deepEqual(rules(nothingLost(open, [at('a', 0), at('b', 1)])), ['all answer alike']);
});

test('a delete that is undone, and a missing scene that nobody deleted', () => {
  assert.deepEqual(rules(nothingLost([write(0, 0), write('absent', 10)], [read(0, 50)])), ['nothing lost']);
  assert.deepEqual(rules(nothingLost([write(0, 0)], [read('absent', 50)])), ['nothing lost']);
});

test('bytes are correct at any time, and available in the end', () => {
  assert.deepEqual(rightBytes([tile('right'), tile('gone'), tile('away')], [tile('right')]), []);
  assert.deepEqual(rules(rightBytes([tile('wrong'), tile('failed')], [])), ['right bytes', 'right bytes']);
  for (const bad of ['gone', 'away', 'wrong', 'failed'] as const)
    assert.deepEqual(rules(rightBytes([], [tile(bad)])), ['right bytes']);
});

test('counts that differ from the found tiles or scenes', () => {
  const count = (tiles: number, scenes: Count['scenes']): Count => ({
    kind: 'count',
    node: 'a',
    invoked: 60,
    ended: 61,
    tiles,
    scenes,
  });
  const found = [read(0, 50)];
  const sizeOf = () => 3;
  assert.deepEqual(exactCounts([count(3, { s: 3 })], found, sizeOf), []);
  assert.deepEqual(rules(exactCounts([count(4, { s: 3 })], found, sizeOf)), ['exact counts']);
  assert.deepEqual(rules(exactCounts([count(3, { s: 2 })], found, sizeOf)), ['exact counts']);
  assert.deepEqual(rules(exactCounts([count(3, {})], found, sizeOf)), ['exact counts']);
  assert.deepEqual(rules(exactCounts([count(3, { s: 3, t: 1 })], found, sizeOf)), ['exact counts']);
});

test('a tile that was just returned is not reported as missing, unless its scene has changed', () => {
  assert.deepEqual(rules(noFalseAbsence([write(0, 0)], [tile('right', 5)])), []);
  assert.deepEqual(rules(noFalseAbsence([write(0, 0)], [tile('gone', 5)])), ['no false absence']);
  assert.deepEqual(rules(noFalseAbsence([write(0, 0), write('absent', 10)], [tile('gone', 5)])), [
    'no false absence',
  ]);
  assert.deepEqual(rules(noFalseAbsence([write(0, 0), write(1, 5)], [tile('gone', 5)])), []);
});

test('numbers of the log', () => {
  const entry = (seq: number, rest: Partial<LoggedCommit> = {}): LoggedCommit => ({
    ...{ seq, claim: `c${seq}`, fence: seq, segment: `g${seq}`, slots: '7' },
    ...rest,
  });
  assert.deepEqual(soundLog(2, 4, [entry(3), entry(4)]), []);
  assert.equal(soundLog(2, 4, [entry(3)]).length, 1);
  assert.equal(soundLog(2, 4, [entry(3), entry(4), entry(4, { claim: 'x', segment: 'y' })]).length, 1);
  assert.equal(soundLog(2, 4, [entry(3), entry(4), entry(5)]).length, 1);
  assert.equal(soundLog(2, 4, [entry(3, { claim: 'c4', fence: 4 }), entry(4)]).length, 1);
  assert.equal(soundLog(2, 4, [entry(3, { segment: 'g4' }), entry(4)]).length, 1);
});

test('derived tiles of an earlier delivery, too few or too many of them, and a delivery that nobody wrote', () => {
  const derived = (delivery: number, files: Record<string, number>): Derived => ({
    kind: 'derived',
    node: 'a',
    invoked: 50,
    ended: 51,
    scenes: { s: { delivery, files } },
  });
  const filesOf = (_: string, delivery: number) => new Map([['t/mask', 100 + delivery]]);
  const writes = [write(0, 0), write(1, 10)];
  const broken = (...all: Derived[]) => rules(freshDerivations(writes, all, filesOf));
  assert.deepEqual(broken(derived(1, { 't/mask': 101 })), []);
  assert.deepEqual(broken(derived(1, { 't/mask': 100 })), ['fresh derivations']);
  assert.deepEqual(broken(derived(1, {})), ['fresh derivations']);
  assert.deepEqual(broken(derived(1, { 't/mask': 101, 'u/mask': 1 })), ['fresh derivations']);
  assert.deepEqual(broken(derived(0, { 't/mask': 100 })), ['fresh derivations']);
});

test('a search among many that is answered partially or not at all although all nodes are healthy', () => {
  const burst = (rest: Partial<Burst> = {}): Burst => ({
    kind: 'burst',
    node: 'a',
    invoked: 0,
    ended: 1,
    isHealthy: true,
    searches: 500,
    partial: 0,
    failed: 0,
    ...rest,
  });
  assert.deepEqual(fullBursts([burst(), burst({ isHealthy: false, partial: 3, failed: 1 })]), []);
  assert.deepEqual(rules(fullBursts([burst({ partial: 1 })])), ['full bursts']);
  assert.deepEqual(rules(fullBursts([burst({ failed: 1 })])), ['full bursts']);
});

test('a checkpoint that follows the commits without an end, and a garbage collection that never runs', () => {
  const run = (work: UpkeepRun['work'], rest: Partial<UpkeepRun> = {}): UpkeepRun => ({
    kind: 'upkeep',
    work,
    invoked: 0,
    ended: 1,
    outcome: 'done',
    commits: 5,
    manifests: 1,
    ...rest,
  });
  assert.deepEqual(upkeepFinishes([]), []);
  assert.deepEqual(upkeepFinishes([run('checkpoint'), run('sweep')]), []);
  assert.deepEqual(upkeepFinishes([run('checkpoint', { outcome: 'failed' })]), []);
  assert.deepEqual(rules(upkeepFinishes([run('checkpoint')])), ['upkeep finishes']);
  const endless = run('checkpoint', { outcome: 'failed', manifests: 21, commits: 300 });
  assert.deepEqual(rules(upkeepFinishes([endless])), ['upkeep finishes']);
});

test('an archived log entry that is missing, or names another segment than etcd', () => {
  const entry = { seq: 3, segment: 'g3', slots: '7', claim: 'c3', fence: 3 };
  const text = JSON.stringify(entry);
  assert.deepEqual(soundCopies([entry], new Map([[3, text]])), []);
  assert.deepEqual(rules(soundCopies([entry], new Map())), ['sound log']);
  assert.deepEqual(rules(soundCopies([{ ...entry, segment: 'g4' }], new Map([[3, text]]))), ['sound log']);
});

test('a replica that is behind, or has other records than the log', () => {
  const replica = (rest: Partial<ReplicaContent> = {}): ReplicaContent => ({
    node: 'a',
    applied: 7,
    expected: new Map([['tiles/t', 'v1']]),
    held: new Map([['tiles/t', 'v1']]),
    ...rest,
  });
  assert.deepEqual(sameReplicas(7, [replica(), replica({ node: 'b' })]), []);
  const held = (...entries: [string, string][]) => replica({ held: new Map(entries) });
  for (const bad of [
    replica({ applied: 6 }),
    held(),
    held(['tiles/t', 'v0']),
    held(['tiles/t', 'v1'], ['tiles/u', 'v1']),
  ])
    assert.deepEqual(rules(sameReplicas(7, [replica(), bad])), ['same replicas']);
});

test('a placement in which slots lack owners, or have owners that are not running', () => {
  const owners = (...nodes: string[]) => nodes.map((node) => ({ node, state: 'available' }));
  const placement = (slots: SeenPlacement['slots'], rest: Partial<SeenPlacement> = {}) => ({
    node: 'a',
    version: 7,
    owners: 2,
    slots,
    ...rest,
  });
  const running = ['1', '2', '3'];
  const good = [owners('1', '2'), owners('2', '3')];
  assert.deepEqual(wholePlacement([placement(good), placement(good, { node: 'b' })], running), []);
  assert.deepEqual(wholePlacement([placement([owners('1'), owners('1')])], ['1']), []);
  for (const bad of [
    [owners('1'), owners('2', '3')],
    [owners('1', '4'), owners('2', '3')],
    [owners('1', '2', '3'), owners('2', '3')],
    [[...owners('1'), { node: '2', state: 'initializing' }], owners('2', '3')],
    [[...owners('1', '2'), { node: '3', state: 'leaving' }], owners('2', '3')],
  ])
    assert.equal(wholePlacement([placement(bad)], running).length, 1);
  assert.equal(wholePlacement([placement(good), placement(good, { version: 6 })], running).length, 1);
});

test('a complete history is divided at its recovery', () => {
  const history = (...events: Event[]) => {
    const made = new History();
    for (const event of events) made.add(event);
    return made;
  };
  const truth = { sizeOf: () => 3, filesOf: () => new Map<string, number>() };
  const events = [
    write(0, 0),
    read(0, 5, { partial: true, returned: 2 }),
    tile('away', 6),
    read(0, 60),
    tile('right', 61),
  ];
  assert.deepEqual(check(history(...events), 50, truth), []);
  assert.deepEqual(rules(check(history(...events), 5, truth)).sort(), ['healed', 'right bytes']);
});

test('the state of scenes in an answer', () => {
  const tiles = new Map([
    ['s 0', new Set(['a', 'b', 'c'])],
    ['s 1', new Set(['b', 'c'])],
  ]);
  const deliveries = {
    scenes: ['s'],
    tilesOf: (scene: string, delivery: number) => tiles.get(`${scene} ${delivery}`) ?? new Set<string>(),
  };
  const found = (ids: string, delivery: number, version = 'v'): FoundTile[] =>
    [...ids].map((id) => ({ id, scene: 's', version, delivery }));
  const seen = (all: FoundTile[], partial = false) => observe(all, deliveries, partial)['s'];
  const isHalf = (state: Seen | undefined) => typeof state === 'object';
  assert.equal(seen([]), 'absent');
  assert.equal(seen(found('abc', 0)), 0);
  assert.equal(seen(found('cb', 1)), 1);
  assert.ok(isHalf(seen(found('ab', 0))));
  assert.equal(seen(found('ab', 0), true), 0);
  assert.ok(isHalf(seen(found('abc', 1))), 'a tile that the delivery does not have');
  assert.ok(isHalf(seen([...found('a', 0), ...found('bc', 1)])), 'the tiles of two deliveries');
  assert.ok(isHalf(seen([...found('a', 0), ...found('bc', 1)], true)));
  assert.ok(isHalf(seen([...found('ab', 0), ...found('c', 0, 'w')])), 'the same delivery, committed twice');
});
