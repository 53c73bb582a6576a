/** CASEI, ACCENTI, arithmetic, intervals of properties and comparisons of any two values, in searches. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { type Filter, parseFilter, searchTiles } from '../../src/query/index.js';
import { foldingFunctions, foldPattern, temporalRelations } from '../../src/query/operators.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { spectrum, tile } from './tiles.js';

/** The scenes of the tiles that match a filter, given as text or as JSON. */
function finder(parts: Partial<TileRecord>[]) {
  const records = parts.map((part) => tile(part));
  const index = new ColumnIndex();
  index.load(records);
  const scenes = new Map(records.map(({ id, scene }) => [id, scene]));
  return async (filter: unknown) => {
    const { ids } = await searchTiles(index, parseFilter({ filter }));
    return ids.map((id) => scenes.get(id)!).sort();
  };
}

const at = (text: string) => Date.parse(`${text}Z`);

test('CASEI applies full case folding, ACCENTI removes accents and strokes', async () => {
  const names = ['København', 'Kobenhavn', 'Straße', 'STRASSE', 'ΟΔΟΣ', 'οδος', 'Kiev', 'débárquér'];
  const find = finder(names.map((scene) => ({ scene })));
  const same: [string, string[]][] = [
    ["CASEI(scene) = casei('KIEV')", ['Kiev']],
    ["CASEI(scene) = CASEI('KØBENHAVN')", ['København']],
    ["CASEI(scene) IN (CASEI('Οδος'), CASEI('Straße'))", ['Straße', 'STRASSE', 'ΟΔΟΣ', 'οδος']],
    ["CASEI(scene) LIKE CASEI('%ΣΤ%') OR CASEI(scene) LIKE CASEI('ΟΔΟΣ%')", ['ΟΔΟΣ', 'οδος']],
    ["ACCENTI(scene) = ACCENTI('København')", ['København', 'Kobenhavn']],
    ["ACCENTI('debarquer') = ACCENTI(scene)", ['débárquér']],
    ["ACCENTI(CASEI(scene)) LIKE ACCENTI(CASEI('kØ%'))", ['København', 'Kobenhavn']],
    ["CASEI(ACCENTI(scene)) = CASEI(ACCENTI('KOBENHAVN'))", ['København', 'Kobenhavn']],
    ["CASEI(scene) = 'KIEV'", []],
    ["NOT CASEI(scene) < 'x'", ['ΟΔΟΣ', 'οδος']],
    ["CASEI(platform) = 'x' OR NOT CASEI(platform) = 'x'", []],
    ["scene LIKE CASEI('STR%')", []],
    ["'København' LIKE 'K_benhavn' AND scene = 'Kiev'", ['Kiev']],
  ];
  for (const [filter, expected] of same) assert.deepEqual(await find(filter), expected.sort(), filter);
});

test('letters fold as in Unicode and the test data of CQL2', () => {
  // CaseFolding.txt of Unicode, status C and F.
  const cases: [given: string, folded: string][] = [
    ['Maße', 'masse'],
    ['MAẞE', 'masse'],
    ['ŉǰﬁﬀ', '\u02bcnj\u030cfiff'],
    ['\u0390\u03b0', '\u03b9\u0308\u0301\u03c5\u0308\u0301'],
    ['ΣςσΑΣ', 'σσσασ'],
    ['µ', 'μ'],
    ['ſ', 's'],
    ['İIıi', 'i\u0307iıi'],
    ['\u212a\u212b', 'kå'],
    ['և', 'եւ'],
    ['ᾳᾼ', 'αιαι'],
    ['Ⅷⓐ', 'ⅷⓐ'],
    ['\u{10400}', '\u{10428}'],
    ['日本', '日本'],
  ];
  for (const [given, folded] of cases) assert.equal(foldingFunctions.casei(given), folded, given);
  const accents: [given: string, plain: string][] = [
    ['Smørrebrødsøl', 'Smorrebrodsol'],
    ['Łódź ŁŁ', 'Lodz LL'],
    ['ĐđĦħŦŧ', 'DdHhTt'],
    ['ÅÄÖ åäö', 'AAO aao'],
    ['e\u0301 \u1dc0\u20d0\ufe20', 'e '],
    ['Ệ', 'E'],
    ['한국 가', '한국 가'],
    ['かが', 'かが'],
    ['', ''],
  ];
  for (const [given, plain] of accents) assert.equal(foldingFunctions.accenti(given), plain, given);
});

test('CASEI equals the full case folding of Python, which is that of Unicode, for every character', (t) => {
  const code = `import json
print(json.dumps([c for c in map(chr, range(0x110000)) if not 0xd800 <= ord(c) < 0xe000 and c.casefold() != c]))
print(json.dumps([c.casefold() for c in map(chr, range(0x110000)) if not 0xd800 <= ord(c) < 0xe000 and c.casefold() != c]))`;
  const { status, stdout } = spawnSync('python3', ['-c', code], { encoding: 'utf8', maxBuffer: 1e8 });
  if (status !== 0) return t.skip('python3 is not installed');
  const [given, expected] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string[]);
  assert.ok(given!.length > 1400);
  for (const [i, one] of given!.entries()) {
    // Unicode folds Cherokee to its capitals, which makes the same texts equal.
    assert.equal(foldingFunctions.casei(one), foldingFunctions.casei(expected![i]!), one);
    assert.equal(foldingFunctions.casei(`x${one}x`), `x${foldingFunctions.casei(one)}x`, one);
  }
  assert.equal(foldingFunctions.casei('ıI'), 'ıi');
});

test('a fold that is applied again changes no character', () => {
  const { casei, accenti } = foldingFunctions;
  for (let code = 0; code < 0x30000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const one = String.fromCodePoint(code);
    const [folded, plain] = [casei(one), accenti(one)];
    const [both, reverse] = [accenti(folded), casei(plain)];
    assert.equal(casei(folded), folded, one);
    assert.equal(accenti(plain), plain, one);
    assert.equal(casei(both), both, one);
    assert.equal(accenti(reverse), reverse, one);
  }
});

test('an applied fold is not applied again', (t) => {
  const { mock } = t.mock.method(foldingFunctions, 'accenti');
  const nested = (text: string) => `CASEI(ACCENTI(CASEI(ACCENTI(ACCENTI(${text})))))`;
  assert.deepEqual(parseFilter({ filter: `${nested('scene')} = ${nested("'KØBÉ'")}` }), {
    op: 'compare',
    kind: 'text',
    sign: '=',
    args: [{ op: 'casei', arg: { op: 'accenti', arg: { property: 'scene' } } }, 'kobe'],
  });
  assert.equal(mock.callCount(), 1);
});

test('ACCENTI reads at most 30 combining marks in a row', () => {
  // Hebrew points are letters of their script, so ACCENTI keeps them. The second one is sorted before the first one.
  const points = (count: number) => `א${'\u05b1\u05b0'.repeat(count / 2)}`;
  assert.equal(foldingFunctions.accenti(points(30)), points(30).normalize('NFC'));
  assert.equal(foldingFunctions.accenti(points(1000)), points(30).normalize('NFC'));
  assert.equal(
    foldingFunctions.accenti(`${points(30)}ב${points(1000)}`),
    `${points(30)}ב${points(30)}`.normalize('NFC'),
  );
  assert.equal(foldingFunctions.accenti(`e${'\u0316\u0301'.repeat(1000)}a`), 'ea');
});

test('a folded pattern keeps its wildcards and escapes', () => {
  const pattern = (given: string) => foldPattern(given, foldingFunctions.casei);
  assert.equal(pattern('ß%_\\%\\_\\\\Ab\\C'), 'ss%_\\%\\_\\\\abc');
  assert.equal(foldPattern('%\u0301e\u0301', foldingFunctions.accenti), '%e');
  // The parts of a syllable are composed together, as in the text that is matched.
  assert.equal(foldPattern('%\u1112\u1161\u11ab_', foldingFunctions.accenti), '%\ud55c_');
  assert.equal(pattern('A\\'), 'a\\\\');
});

test('arithmetic follows the grammar of CQL2, and is unknown for an unknown operand or a division by zero', async () => {
  const covers = [0, 20.1, 41, null];
  const find = finder(
    covers.map((cloudCover, i) => ({ scene: `s${i}`, cloudCover, coverage: i === 0 ? 0 : 82 })),
  );
  const same: [string, string[]][] = [
    ['eo:cloud_cover + 1 > 20', ['s1', 's2']],
    ['NOT eo:cloud_cover + 1 > 20', ['s0']],
    ['eo:cloud_cover * 2 = pixel_coverage', ['s0', 's2']],
    ['eo:cloud_cover * 2 = 40.2', ['s1']],
    ['pixel_coverage / eo:cloud_cover >= 0', ['s1', 's2']],
    ['NOT pixel_coverage / eo:cloud_cover >= 3', ['s2']],
    ['pixel_coverage / eo:cloud_cover IS NULL', ['s0', 's3']],
    ['pixel_coverage div eo:cloud_cover = 4', ['s1']],
    ['pixel_coverage % eo:cloud_cover = 0', ['s2']],
    ['eo:cloud_cover ^ 0 = 1', ['s0', 's1', 's2']],
    ['(eo:cloud_cover - 41) ^ 0.5 = 0', ['s2']],
    ['eo:cloud_cover * 1e200 * 1e200 > 0', []],
    ['41 = 1 + 2 * 3 ^ 2 * 2 + (2 + 2) AND eo:cloud_cover = 41', ['s2']],
    ['-7 div 2 = -3 AND -7 % 2 = -1 AND 2 - 3 - 4 = -5 AND eo:cloud_cover IS NULL', ['s3']],
    ['eo:cloud_cover = 20.1 * 2 - 20.1', ['s1']],
    ['eo:cloud_cover NOT BETWEEN 1 - 1 AND pixel_coverage / 4', ['s2']],
    ['eo:cloud_cover IN (pixel_coverage / 2, 20 + 0.1)', ['s0', 's1', 's2']],
    ['1 / 0 = 1 OR NOT 1 / 0 = 1', []],
    ['(1 / 0 = 1) IS NULL AND NOT (eo:cloud_cover < 5) IS NULL', ['s0', 's1', 's2']],
  ];
  for (const [filter, expected] of same) assert.deepEqual(await find(filter), expected, filter);
});

test('both ends of a spectrum are numbers, and unknown without one', async () => {
  const find = finder([
    { scene: 'short', groups: spectrum(400, 1000) },
    { scene: 'long', groups: spectrum(400, 2500) },
    { scene: 'none', groups: [] },
  ]);
  const same: [string, string[]][] = [
    ['hsi:wavelength_max * 2 = 2', ['short']],
    ['hsi:wavelength_min * 2 = 0.8', ['long', 'short']],
    ['hsi:wavelength_max - hsi:wavelength_min > 1', ['long']],
    ['NOT hsi:wavelength_max - hsi:wavelength_min > 1', ['short']],
    ['hsi:wavelength_max + 1 IS NULL', ['none']],
    ['hsi:wavelength_max > hsi:wavelength_min', ['long', 'short']],
    ['hsi:wavelength_max IN (1, 2)', ['short']],
    ['hsi:wavelength_max NOT IN (1, 2)', ['long']],
    ['hsi:wavelength_min <= 0.4 AND hsi:wavelength_max >= 2.5', ['long']],
  ];
  for (const [filter, expected] of same) assert.deepEqual(await find(filter), expected, filter);
});

test('any two values can be compared, including literals', async () => {
  const find = finder([
    {
      scene: 'landsat-8',
      platform: 'landsat-8',
      start: at('2022-04-14T00:00:00'),
      end: at('2022-04-15T00:00:00'),
    },
    { scene: 'a', platform: null, start: at('2022-04-14T14:48:46'), end: at('2022-04-14T14:48:46') },
  ]);
  const everything = ['a', 'landsat-8'];
  const values = ["'foo'", 'true', '3.14', '1', "TIMESTAMP('2022-04-14T14:48:46Z')", "DATE('2022-04-14')"];
  for (const value of [...values, 'scene', 'datetime', 'eo:cloud_cover + 1', 'pixel_coverage']) {
    const found = value.startsWith('eo') ? [] : everything;
    for (const sign of ['=', '<=', '>='])
      assert.deepEqual(await find(`${value} ${sign} ${value}`), found, value);
    for (const sign of ['<>', '<', '>']) assert.deepEqual(await find(`${value} ${sign} ${value}`), [], value);
  }
  const same: [string, string[]][] = [
    ['scene = platform', ['landsat-8']],
    ["scene IN ('b', platform)", ['landsat-8']],
    ['platform <> scene', []],
    ['scene > geocode', ['a', 'landsat-8']],
    ['"grid:code" = geocode', []],
    ['start_datetime < end_datetime', ['landsat-8']],
    ['NOT start_datetime >= end_datetime', ['landsat-8']],
    ["DATE('2022-04-14') = datetime", everything],
    ["DATE('2022-04-14') = TIMESTAMP('2022-04-14T14:48:46Z')", everything],
    ["DATE('2022-04-15') > TIMESTAMP('2022-04-14T14:48:46Z')", everything],
    ['TRUE <> FALSE', everything],
    ["'a' IS NULL OR 5 IS NULL OR TRUE IS NULL OR POINT(1 2) IS NULL", []],
    ["INTERVAL(start_datetime, '..') IS NULL", ['a']],
    ["(platform = 'x' AND scene = 'a') IS NULL", ['a']],
    ['S_EQUALS(geometry, geometry) AND NOT S_TOUCHES(geometry, geometry)', everything],
    ["T_DURING(INTERVAL('2020-01-02','2020-01-03'), INTERVAL('2020-01-01','2020-01-04'))", everything],
    ["T_AFTER(DATE('2020-01-01'), INTERVAL('2020-01-02','..'))", []],
    ["T_AFTER(DATE('2020-01-03'), INTERVAL('..','2020-01-02'))", everything],
    ["T_BEFORE(INTERVAL('..','2020-01-01'), INTERVAL('2020-01-02','..'))", everything],
    ["T_DURING(INTERVAL('2020-01-01','2020-01-02'), INTERVAL('..','..'))", everything],
    ["T_DURING(INTERVAL('2020-01-01','..'), INTERVAL('..','..'))", []],
    ["T_STARTEDBY(INTERVAL('..','..'), INTERVAL('..','2020-01-02'))", everything],
    ["T_FINISHEDBY(INTERVAL('..','..'), INTERVAL('2020-01-02','..'))", everything],
    ["INTERVAL('2020-01-01','..') IS NULL", []],
    ["INTERVAL('..','..') IS NULL OR DATE('2020-01-01') IS NULL", []],
  ];
  for (const [filter, expected] of same) assert.deepEqual(await find(filter), expected, filter);
});

test('a literal that another node sends on the left is compared in this order', async () => {
  const few = new ColumnIndex();
  few.load(['a', 'B', 'c'].map((scene) => tile({ scene })));
  const text = { op: 'casei', arg: { property: 'scene' } } as const;
  const filter = (sign: '<' | '>='): Filter => ({ op: 'compare', kind: 'text', sign, args: ['b', text] });
  const scenes = async (one: Filter) =>
    (await searchTiles(few, one)).ids.map((id) => id.split('_')[1]).sort();
  assert.deepEqual(await scenes(filter('<')), ['c']);
  assert.deepEqual(await scenes(filter('>=')), ['B', 'a']);
});

test('all temporal functions accept intervals of properties, in either order and with open ends', async () => {
  const year: [number, number] = [at('2021-01-01T00:00:00'), at('2021-12-31T23:59:59')];
  const period = (scene: string, start: string, end: string) => ({ scene, start: at(start), end: at(end) });
  const tiles = [
    period('instant', '2021-03-01T00:00:00', '2021-03-01T00:00:00'),
    {
      ...period('before', '2020-01-01T00:00:00', '2020-03-01T00:00:00'),
      createdAt: at('2024-01-01T00:00:00'),
    },
    period('after', '2022-01-01T00:00:00', '2022-03-01T00:00:00'),
    period('during', '2021-02-01T00:00:00', '2021-03-01T00:00:00'),
    period('contains', '2020-02-01T00:00:00', '2022-03-01T00:00:00'),
    period('equals', '2021-01-01T00:00:00', '2021-12-31T23:59:59'),
    period('starts', '2021-01-01T00:00:00', '2021-02-01T00:00:00'),
    period('startedBy', '2021-01-01T00:00:00', '2022-02-01T00:00:00'),
    period('finishes', '2021-05-01T00:00:00', '2021-12-31T23:59:59'),
    period('finishedBy', '2020-05-01T00:00:00', '2021-12-31T23:59:59'),
    period('meets', '2020-05-01T00:00:00', '2021-01-01T00:00:00'),
    period('metBy', '2021-12-31T23:59:59', '2022-05-01T00:00:00'),
    period('overlaps', '2020-05-01T00:00:00', '2021-05-01T00:00:00'),
    period('overlappedBy', '2021-05-01T00:00:00', '2022-05-01T00:00:00'),
  ];
  const find = finder(tiles);
  const interval = "INTERVAL('2021-01-01T00:00:00Z','2021-12-31T23:59:59Z')";
  const json = { interval: ['2021-01-01T00:00:00Z', '2021-12-31T23:59:59Z'] };
  const own = { interval: [{ property: 'start_datetime' }, { property: 'end_datetime' }] };
  for (const [op, relation] of Object.entries(temporalRelations)) {
    const scenes = (holds: (start: number, end: number) => boolean) =>
      tiles
        .filter(({ start, end }) => start !== end && holds(start, end))
        .map(({ scene }) => scene)
        .sort();
    const [forth, back] = [
      scenes((start, end) => relation(start, end, ...year)),
      scenes((start, end) => relation(...year, start, end)),
    ];
    assert.ok(forth.length > 0, op);
    assert.deepEqual(
      await find(`${op.toUpperCase()}(INTERVAL(start_datetime,"end_datetime"),${interval})`),
      forth,
      op,
    );
    assert.deepEqual(await find(`${op}(${interval},interval(start_datetime,end_datetime))`), back, op);
    assert.deepEqual(await find({ op, args: [own, json] }), forth, op);
    assert.deepEqual(await find({ op: op.toLowerCase(), args: [json, own] }), back, op);
    const rest = scenes((start, end) => !relation(start, end, ...year));
    assert.deepEqual(await find(`NOT ${op}(INTERVAL(start_datetime,end_datetime),${interval})`), rest, op);
  }
  const named: [string, string[]][] = [
    ["T_EQUALS(INTERVAL(datetime,datetime), TIMESTAMP('2021-03-01T00:00:00Z'))", ['instant']],
    [`T_EQUALS(INTERVAL(datetime,'2021-12-31T23:59:59Z'), ${interval})`, ['equals', 'startedBy', 'starts']],
    ["T_BEFORE(INTERVAL('..',end_datetime), INTERVAL('2020-06-01','..'))", ['before']],
    ["T_EQUALS(INTERVAL(start_datetime,'..'), INTERVAL('2022-01-01T00:00:00Z','..'))", ['after']],
    [
      "T_DURING(DATE('2019-01-01'), INTERVAL(created,datetime)) AND NOT scene LIKE 'b%'",
      tiles.flatMap(({ scene }) => (scene === 'before' ? [] : [scene])).sort(),
    ],
    ["T_INTERSECTS(INTERVAL(datetime,created), DATE('2023-06-01'))", ['before']],
    // These end before they start.
    [`T_INTERSECTS(INTERVAL(end_datetime,start_datetime), ${interval})`, []],
    [`NOT T_INTERSECTS(INTERVAL(end_datetime,start_datetime), ${interval})`, []],
    [
      "T_STARTS(INTERVAL(start_datetime,start_datetime), datetime) AND T_AFTER(datetime, DATE('2022-01-01'))",
      [],
    ],
    [
      "T_STARTS(INTERVAL(start_datetime,start_datetime), datetime) AND datetime >= DATE('2022-01-01')",
      ['after'],
    ],
  ];
  for (const [filter, expected] of named) assert.deepEqual(await find(filter), expected, filter);
});
