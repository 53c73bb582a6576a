/** Expressions: values are compared with plain JavaScript, and invalid texts are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Expression } from '../../src/expressions/parser.js';
import { parseExpression, parseExpressions } from '../../src/expressions/parser.js';
import { compileExpression, evaluateProgram } from '../../src/expressions/program.js';

const BANDS = ['nir', 'red', '10m_b1'];

/** An expression as a fully parenthesised text, and as JavaScript of a pixel. */
interface Sample {
  text: string;
  of(pixel: number[]): number;
}

const operation =
  (operator: string, apply: (a: number, b: number) => number) =>
  ([a, b]: Sample[]): Sample => ({
    text: `(${a.text} ${operator} ${b.text})`,
    of: (pixel) => apply(a.of(pixel), b.of(pixel)),
  });

const truth = (holds: (a: number, b: number) => boolean) => (a: number, b: number) =>
  Number.isNaN(a) || Number.isNaN(b) ? NaN : Number(holds(a, b));

const OPERATIONS: ((args: Sample[]) => Sample)[] = [
  operation('+', (a, b) => a + b),
  operation('-', (a, b) => a - b),
  operation('*', (a, b) => a * b),
  operation('/', (a, b) => a / b),
  operation('**', (a, b) => (Number.isNaN(a) ? NaN : a ** b)),
  operation(
    '<',
    truth((a, b) => a < b),
  ),
  operation(
    '<=',
    truth((a, b) => a <= b),
  ),
  operation(
    '>',
    truth((a, b) => a > b),
  ),
  operation(
    '>=',
    truth((a, b) => a >= b),
  ),
  operation(
    '==',
    truth((a, b) => a === b),
  ),
  operation(
    '!=',
    truth((a, b) => a !== b),
  ),
  ([a]) => ({ text: `(-${a.text})`, of: (pixel) => -a.of(pixel) }),
  ([a]) => ({ text: `abs(${a.text})`, of: (pixel) => Math.abs(a.of(pixel)) }),
  ([a]) => ({ text: `sqrt(${a.text})`, of: (pixel) => Math.sqrt(a.of(pixel)) }),
  ([a]) => ({ text: `log(${a.text})`, of: (pixel) => Math.log(a.of(pixel)) }),
  ([a, b]) => ({ text: `min(${a.text}, ${b.text})`, of: (pixel) => Math.min(a.of(pixel), b.of(pixel)) }),
  ([a, b, c]) => ({
    text: `max(${a.text},${b.text},${c.text})`,
    of: (pixel) => Math.max(a.of(pixel), b.of(pixel), c.of(pixel)),
  }),
  ([a, b, c]) => ({
    text: `where(${a.text}, ${b.text}, ${c.text})`,
    of(pixel) {
      const condition = a.of(pixel);
      if (Number.isNaN(condition)) return NaN;
      return condition !== 0 ? b.of(pixel) : c.of(pixel);
    },
  }),
];

const leaf: fc.Arbitrary<Sample> = fc.oneof(
  fc.nat(BANDS.length - 1).map((band) => ({ text: BANDS[band], of: (pixel: number[]) => pixel[band] })),
  fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => ({ text: String(value), of: () => value })),
);

const sample: fc.Arbitrary<Sample> = fc.letrec<{ node: Sample }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc
      .tuple(fc.constantFrom(...OPERATIONS), tie('node'), tie('node'), tie('node'))
      .map(([make, ...args]) => make(args)),
  ),
})).node;

function valuesOf(text: string, pixels: number[][]): number[] {
  const program = compileExpression(parseExpression(text), (name) => BANDS.indexOf(name));
  const bands = BANDS.map((_, band) => Float64Array.from(pixels, (pixel) => pixel[band]));
  return [...evaluateProgram(program, bands, pixels.length)];
}

test('values equal those of plain JavaScript, or no data if these are not finite', () => {
  const value = fc.oneof(fc.double({ min: -2, max: 2 }), fc.constantFrom(NaN, 0, 1, 10_000));
  const pixels = fc.array(fc.array(value, { minLength: 3, maxLength: 3 }), { minLength: 1, maxLength: 3000 });
  fc.assert(
    fc.property(sample, pixels, ({ text, of }, given) => {
      fc.pre(text.length <= 1000);
      const expected = given.map((pixel) => {
        const value = of(pixel);
        const lacksBand = BANDS.some((name, b) => text.includes(name) && Number.isNaN(pixel[b]));
        return Number.isFinite(value) && !lacksBand ? value : NaN;
      });
      assert.deepEqual(valuesOf(text, given), expected);
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('no operator turns a missing operand into a value', () => {
  for (const operator of ['+', '-', '*', '/', '**', '<', '<=', '>', '>=', '==', '!='])
    for (const number of ['0', '1', '(1 - 1)', '(red - red)'])
      for (const text of [
        `nir ${operator} ${number}`,
        `${number} ${operator} nir`,
        `(${number} ${operator} nir) ** 0`,
      ])
        assert.deepEqual(valuesOf(text, [[NaN, 3, 3]]), [NaN], text);
  assert.deepEqual(valuesOf('nir ** (red - red) + (nir - nir) ** 0', [[2, 3, 3]]), [2]);
});

test('operators have the precedence of Python', () => {
  const pixel = [[0.5, 0.1, 3]];
  for (const [text, expected] of [
    ['nir - red - 10m_b1', 0.5 - 0.1 - 3],
    ['nir - red * 10m_b1', 0.5 - 0.1 * 3],
    ['(nir-red)/(nir+red)', (0.5 - 0.1) / (0.5 + 0.1)],
    ['-10m_b1 ** 2', -9],
    ['2 ** -1', 0.5],
    ['2 ** 3 ** 2', 512],
    ['10m_b1 / 2 / 3', 0.5],
    ['nir + red > red * 2', 1],
    ['- - 2', 2],
    ['+2', 2],
    ['1e3 + .5', 1000.5],
    [' where( nir > red , 1 , 0 ) ', 1],
  ] as const)
    assert.deepEqual(valuesOf(text, pixel), [expected], text);
});

test('a syntax error states its position and reason', () => {
  for (const [text, position, why] of [
    ['', 1, /number, a band/],
    ['nir +', 6, /not the end/],
    ['nir +  ', 6, /not the end/],
    ['nir red', 5, /an operator or the end is expected, not "red"; a URL needs %2B in place of \+$/],
    ['nir  " red', 6, /'"' has no meaning/],
    ['nir @ red', 5, /"@" has no meaning/],
    ['(nir', 5, /"\)" is expected/],
    ['nir & red', 5, /"&" has no meaning/],
    ['1 < 2 < 3', 7, /an operator or the end is expected, not "<"$/],
    ['(nir-red)/(nir red)', 16, /"\)" is expected, not "red"; a URL needs %2B/],
    ['foo(1)', 1, /no function "foo"; there are where, min, max/],
    ['constructor(1)', 1, /no function/],
    ['where(1, 2)', 1, /where takes 3 values, not 2/],
    ['min(1)', 1, /2 or more, not|2 or more values/],
    ['nir; import("fs")', 4, /";" has no meaning/],
    [`${'('.repeat(60)}1${')'.repeat(60)}`, 52, /nested more than 50/],
    [`${'-'.repeat(200)}1`, 52, /nested more than 50/],
    [`1${'**1'.repeat(200)}`, undefined, /nested more than 50/],
    [`1${'+1'.repeat(200)}`, undefined, /more than 100 operations/],
    [`1${'+1'.repeat(101)}`, undefined, /more than 100 operations/],
    ['x'.repeat(1001), 1001, /longer than 1000/],
    ['1'.repeat(1001), 1001, /longer than 1000/],
  ] as [string, number | undefined, RegExp][]) {
    assert.throws(
      () => parseExpression(text),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'TW_IMAGERY_EXPRESSION', text);
        assert.match(error.message, why);
        if (position !== undefined) assert.match(error.message, new RegExp(`character ${position}:`), text);
        return true;
      },
    );
  }
});

test('operations are counted over all expressions', () => {
  const sum = (operations: number) => `1${'+1'.repeat(operations)}`;
  assert.equal(parseExpressions([sum(50), sum(50)]).length, 2);
  assert.throws(() => parseExpressions([sum(50), sum(51)]), {
    code: 'TW_IMAGERY_EXPRESSION',
    message: /more than 100 operations in all expressions/,
  });
});

test('the limits themselves are allowed', () => {
  assert.deepEqual(valuesOf(`1${'+1'.repeat(100)}`, [[0, 0, 0]]), [101]);
  assert.deepEqual(valuesOf(`${'('.repeat(50)}1${')'.repeat(50)}`, [[0, 0, 0]]), [1]);
  // Consecutive parentheses are not nested.
  assert.deepEqual(valuesOf(`0${'+(1)'.repeat(60)}`, [[0, 0, 0]]), [60]);
  assert.deepEqual(valuesOf('1'.padEnd(1000), [[0, 0, 0]]), [1]);
  assert.deepEqual(valuesOf('.25 + 10.75', [[0, 0, 0]]), [11]);
});

test('a band given by wavelength is a name, and an alias of an expression is compiled as the expression', () => {
  const expression = parseExpression('2.25um - 860nm / 1250.5nm + 10.75um');
  const names: string[] = [];
  const program = compileExpression(expression, (name, position) => {
    names.push(`${name} at ${position}`);
    return name === '860nm' ? parseExpression('a * 2') : 0;
  });
  assert.deepEqual(names, ['2.25um at 0', '860nm at 9', 'a at 0', '1250.5nm at 17', '10.75um at 28']);
  assert.deepEqual([...evaluateProgram(program, [Float64Array.of(8, 4)], 2)], [14, 6]);
});

test('parsing any text gives a value or an error with a code', () => {
  const piece = fc.constantFrom(
    ...'nir,red,10m_b1,(,),+,-,*,**,/,<,where,min,1,.5,1e400, ,;,é,\u0000'.split(','),
    ',',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (text) => {
        let expression: Expression;
        try {
          expression = parseExpression(text);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'TW_IMAGERY_EXPRESSION');
          return;
        }
        const program = compileExpression(expression, () => 0);
        const [value] = evaluateProgram(program, [Float64Array.of(0.5)], 1);
        assert.ok(Number.isFinite(value) || Number.isNaN(value));
      },
    ),
    { seed: 42, numRuns: 2000 },
  );
});
