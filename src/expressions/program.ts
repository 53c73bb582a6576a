/** Compiles expressions to steps over arrays of pixels, and evaluates them. */
import type { Expression, FunctionName, Operator } from './parser.js';

type Code = Operator | FunctionName | 'negate';

type Step =
  | { code: 'band'; band: number; to: number }
  | { code: 'number'; value: number; to: number }
  | { code: Code; args: number[]; to: number };

/** Plain data, for worker threads. The result is in register 0. */
export interface Program {
  steps: Step[];
  registers: number;
}

/** `bandOf` returns the number of a band among the inputs by its name, or an expression that replaces the name. */
export function compileExpression(
  expression: Expression,
  bandOf: (name: string, position: number) => number | Expression,
): Program {
  const steps: Step[] = [];
  let registers = 1;
  const emit = (node: Expression, to: number): void => {
    registers = Math.max(registers, to + 1);
    const apply = (code: Code, operands: Expression[]) => {
      for (const [i, operand] of operands.entries()) emit(operand, to + i);
      steps.push({ code, args: operands.map((_, i) => to + i), to });
    };
    switch (node.kind) {
      case 'number':
        steps.push({ code: 'number', value: node.value, to });
        break;
      case 'band': {
        const band = bandOf(node.name, node.position);
        if (typeof band === 'number') steps.push({ code: 'band', band, to });
        else emit(band, to);
        break;
      }
      case 'negate':
        apply('negate', [node.operand]);
        break;
      case 'operation':
        apply(node.operator, [node.left, node.right]);
        break;
      case 'call':
        apply(node.name, node.args);
        break;
    }
  };
  emit(expression, 0);
  return { steps, registers };
}

/** Pixels of one pass through all steps. Their registers fit into the cache. */
const CHUNK_PIXELS = 1024;

/** Steps whose result can be a number although an operand is NaN. */
const HIDES_NAN: ReadonlySet<Step['code']> = new Set(['where', '**']);

/**
 * Returns the value of an expression for each pixel. `bands` are physical values of equal length, NaN for no data. A comparison is 1 or 0.
 * The value is NaN where one of the bands of the expression is, also in a branch of `where` that is not selected. Values that are not
 * finite at the end (such as x / 0) become NaN.
 */
export function evaluateProgram(
  { steps, registers }: Program,
  bands: Float64Array[],
  length: number,
): Float64Array {
  const out = new Float64Array(length);
  const memory = Array.from({ length: registers }, () => new Float64Array(Math.min(CHUNK_PIXELS, length)));
  const hidesNaN = steps.some(({ code }) => HIDES_NAN.has(code));
  const inputs = hidesNaN ? steps.flatMap((step) => (step.code === 'band' ? bands[step.band]! : [])) : [];
  for (let start = 0; start < length; start += CHUNK_PIXELS) {
    const count = Math.min(CHUNK_PIXELS, length - start);
    for (const step of steps) {
      const to = memory[step.to];
      if (step.code === 'band') to.set(bands[step.band].subarray(start, start + count));
      else if (step.code === 'number') to.fill(step.value);
      else
        run(
          step.code,
          step.args.map((register) => memory[register]),
          to,
          count,
        );
    }
    const [result] = memory;
    for (let i = 0; i < count; i++) out[start + i] = Number.isFinite(result[i]) ? result[i] : NaN;
    for (const input of inputs)
      for (let i = start; i < start + count; i++) if (Number.isNaN(input[i])) out[i] = NaN;
  }
  return out;
}

function run(code: Code, args: Float64Array[], to: Float64Array, count: number): void {
  const [a, b, c] = args;
  switch (code) {
    case '+':
      for (let i = 0; i < count; i++) to[i] = a[i] + b[i];
      return;
    case '-':
      for (let i = 0; i < count; i++) to[i] = a[i] - b[i];
      return;
    case '*':
      for (let i = 0; i < count; i++) to[i] = a[i] * b[i];
      return;
    case '/':
      for (let i = 0; i < count; i++) to[i] = a[i] / b[i];
      return;
    case '**':
      // NaN ** 0 is 1 in JavaScript.
      for (let i = 0; i < count; i++) to[i] = Number.isNaN(a[i]) ? NaN : a[i] ** b[i];
      return;
    case '<':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] < b[i], a[i], b[i]);
      return;
    case '<=':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] <= b[i], a[i], b[i]);
      return;
    case '>':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] > b[i], a[i], b[i]);
      return;
    case '>=':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] >= b[i], a[i], b[i]);
      return;
    case '==':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] === b[i], a[i], b[i]);
      return;
    case '!=':
      for (let i = 0; i < count; i++) to[i] = truth(a[i] !== b[i], a[i], b[i]);
      return;
    case 'negate':
      for (let i = 0; i < count; i++) to[i] = -a[i];
      return;
    case 'where':
      for (let i = 0; i < count; i++) to[i] = Number.isNaN(a[i]) ? NaN : a[i] !== 0 ? b[i] : c[i];
      return;
    case 'min':
      for (const other of args.slice(1)) for (let i = 0; i < count; i++) to[i] = Math.min(to[i], other[i]);
      return;
    case 'max':
      for (const other of args.slice(1)) for (let i = 0; i < count; i++) to[i] = Math.max(to[i], other[i]);
      return;
    case 'abs':
      for (let i = 0; i < count; i++) to[i] = Math.abs(a[i]);
      return;
    case 'sqrt':
      for (let i = 0; i < count; i++) to[i] = Math.sqrt(a[i]);
      return;
    case 'log':
      for (let i = 0; i < count; i++) to[i] = Math.log(a[i]);
      return;
  }
}

function truth(holds: boolean, a: number, b: number): number {
  return Number.isNaN(a) || Number.isNaN(b) ? NaN : Number(holds);
}
