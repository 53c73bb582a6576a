/** The operators and functions of filters: relations of periods, arithmetic, comparisons, patterns of LIKE, and folding of texts. */

export type Period = readonly [start: number, end: number];

type Relation = (aStart: number, aEnd: number, bStart: number, bEnd: number) => boolean;

/**
 * The temporal functions of CQL2 (OGC 21-065r2, section 7.8): the relations of Allen ("Maintaining knowledge about temporal intervals",
 * 1983) over closed periods in milliseconds. An instant is a period that ends where it starts.
 */
export const temporalRelations = {
  t_after: (a, _aEnd, _b, bEnd) => a > bEnd,
  t_before: (_a, aEnd, b) => aEnd < b,
  t_contains: (a, aEnd, b, bEnd) => a < b && aEnd > bEnd,
  t_disjoint: (a, aEnd, b, bEnd) => a > bEnd || aEnd < b,
  t_during: (a, aEnd, b, bEnd) => a > b && aEnd < bEnd,
  t_equals: (a, aEnd, b, bEnd) => a === b && aEnd === bEnd,
  t_finishedBy: (a, aEnd, b, bEnd) => a < b && aEnd === bEnd,
  t_finishes: (a, aEnd, b, bEnd) => a > b && aEnd === bEnd,
  t_intersects: (a, aEnd, b, bEnd) => a <= bEnd && aEnd >= b,
  t_meets: (_a, aEnd, b) => aEnd === b,
  t_metBy: (a, _aEnd, _b, bEnd) => a === bEnd,
  t_overlappedBy: (a, aEnd, b, bEnd) => a > b && a < bEnd && aEnd > bEnd,
  t_overlaps: (a, aEnd, b, bEnd) => a < b && aEnd > b && aEnd < bEnd,
  t_startedBy: (a, aEnd, b, bEnd) => a === b && aEnd > bEnd,
  t_starts: (a, aEnd, b, bEnd) => a === b && aEnd < bEnd,
} satisfies Record<string, Relation>;

export type TemporalOp = keyof typeof temporalRelations;

/** The equivalent function with swapped arguments. */
export const temporalConverse: Record<TemporalOp, TemporalOp> = {
  t_after: 't_before',
  t_before: 't_after',
  t_contains: 't_during',
  t_disjoint: 't_disjoint',
  t_during: 't_contains',
  t_equals: 't_equals',
  t_finishedBy: 't_finishes',
  t_finishes: 't_finishedBy',
  t_intersects: 't_intersects',
  t_meets: 't_metBy',
  t_metBy: 't_meets',
  t_overlappedBy: 't_overlaps',
  t_overlaps: 't_overlappedBy',
  t_startedBy: 't_starts',
  t_starts: 't_startedBy',
};

/** A period that all periods with the relation `op` to the given period overlap. */
export function boundingPeriod(op: TemporalOp, [start, end]: Period): Period {
  if (op === 't_after') return [end, Infinity];
  if (op === 't_before') return [-Infinity, start];
  return op === 't_disjoint' ? [-Infinity, Infinity] : [start, end];
}

/**
 * The arithmetic of CQL2 (OGC 21-065r2, section 7.12). NaN stands for an unknown number. `div` drops the fraction of the quotient; `%` is
 * the remainder of that, with the sign of the dividend, as in SQL.
 */
const operators = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
  div: (a, b) => Math.trunc(a / b),
  '^': (a, b) => a ** b,
} satisfies Record<string, (a: number, b: number) => number>;

export type ArithmeticOp = keyof typeof operators;

export const arithmeticOps = Object.keys(operators) as ArithmeticOp[];

/** Unknown if an operand is unknown or the result is not finite, as after a division by zero. */
export function calculate(op: ArithmeticOp, a: number, b: number): number {
  // NaN ** 0 is 1.
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  const result = operators[op](a, b);
  return Number.isFinite(result) ? result : Number.NaN;
}

/** Comparisons of two values. A comparison with NaN is false. */
export const comparisons = {
  '=': (one, value) => one === value,
  '<>': (one, value) => one < value || one > value,
  '<': (one, value) => one < value,
  '<=': (one, value) => one <= value,
  '>': (one, value) => one > value,
  '>=': (one, value) => one >= value,
} satisfies Record<string, <T extends string | number>(one: T, value: T) => boolean>;

export type ComparisonOp = keyof typeof comparisons;

/** Parts of a pattern of LIKE: `%` stands for any text, `_` for one character; a backslash escapes a character. */
const ANY_TEXT = Symbol('%');
const ONE_CHARACTER = Symbol('_');

/**
 * Positions in a pattern up to which the text so far matches, ascending. No position before the last `%` among them is listed: a text that
 * matches from there also matches from this `%`.
 */
export type LikePositions = readonly number[];

/**
 * A pattern of LIKE, which matches entire texts, case-sensitively. A text may be matched in parts. The time is proportional to the length
 * of the text times that of the pattern.
 */
export class LikePattern {
  private readonly parts: readonly (string | symbol)[];
  /** The positions before any text. */
  readonly start: LikePositions;
  /** The positions at each `%`, by its position, and the text between it and the next one, if that has no `_` and no surrogates. */
  private readonly atAny = new Map<number, { positions: LikePositions; next: string | undefined }>();

  constructor(pattern: string) {
    const parts = partsOf(pattern);
    this.parts = parts;
    for (const [at, part] of parts.entries()) {
      if (part !== ANY_TEXT || parts[at + 1] === ANY_TEXT) continue;
      const end = parts.findIndex((other, i) => i > at && typeof other === 'symbol');
      const text = parts[end] === ANY_TEXT ? parts.slice(at + 1, end).join('') : undefined;
      const next = text !== undefined && /[\ud800-\udfff]/.test(text) ? undefined : text;
      this.atAny.set(at, { positions: [at, at + 1], next });
    }
    this.start = this.reached([0]);
  }

  /** The positions after a text that follows the one before. Half of a surrogate pair must not end the text. */
  after(positions: LikePositions, text: string): LikePositions {
    let last = positions;
    let rest = text;
    // Texts after a `%` are mostly found, or not, by one search.
    for (;;) {
      const any = this.atAny.get(last[0] ?? -1);
      if (any?.positions !== last) break;
      // Any text follows the last `%`.
      if (last[1] === this.parts.length) return last;
      if (any.next === undefined) break;
      const at = rest.indexOf(any.next);
      if (at < 0) {
        // The end of the text may be the beginning of the next one.
        rest = rest.slice(Math.max(0, rest.length - any.next.length + 1));
        break;
      }
      rest = rest.slice(at + any.next.length);
      last = this.reached([last[1]! + any.next.length]);
    }
    for (const character of rest) {
      if (last.length === 0) break;
      last = this.reached(this.step(last, character));
    }
    return last;
  }

  /** True if the text matches that led to these positions. */
  isEnd(positions: LikePositions): boolean {
    return positions.at(-1) === this.parts.length;
  }

  matches(text: string): boolean {
    return this.isEnd(this.after(this.start, text));
  }

  private step(positions: LikePositions, character: string): number[] {
    const next: number[] = [];
    for (const at of positions) {
      const part = this.parts[at];
      if (part === ANY_TEXT) next.push(at);
      else if (part === ONE_CHARACTER || part === character) next.push(at + 1);
    }
    return next;
  }

  /** Adds the positions after each `%`, which may be empty, and removes those before the last one. */
  private reached(positions: readonly number[]): LikePositions {
    const { parts } = this;
    const all: number[] = [];
    let lastAny = 0;
    for (const position of positions) {
      let at = position;
      if (all.length > 0 && all.at(-1)! >= at) continue;
      for (; parts[at] === ANY_TEXT; at++) lastAny = all.push(at) - 1;
      all.push(at);
    }
    const any = this.atAny.get(all[lastAny] ?? -1);
    if (any && all.length === lastAny + 2) return any.positions;
    return lastAny > 0 ? all.slice(lastAny) : all;
  }
}

/** The common prefix of all matching texts. `isAll` is true if all texts with this prefix match. */
export function likePrefix(pattern: string): { prefix: string; isAll: boolean } {
  const parts = partsOf(pattern);
  const end = parts.findIndex((part) => typeof part === 'symbol');
  const prefix = parts.slice(0, end < 0 ? undefined : end).join('');
  return { prefix, isAll: end === parts.length - 1 && parts[end] === ANY_TEXT };
}

/** The pattern that matches exactly this text. */
export function literalPattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

/** The pattern for folded texts that corresponds to a pattern. */
export function foldPattern(pattern: string, fold: (text: string) => string): string {
  return pattern.replace(/\\(.)|[%_]|(?:[^%_\\]|\\$)+/gsu, (part, escaped: string | undefined) =>
    part === '%' || part === '_' ? part : literalPattern(fold(escaped ?? part)),
  );
}

function partsOf(pattern: string): (string | symbol)[] {
  return Array.from(pattern.matchAll(/\\(.)|./gsu), ([all, escaped]) => {
    if (escaped !== undefined) return escaped;
    return all === '%' ? ANY_TEXT : all === '_' ? ONE_CHARACTER : all;
  });
}

/**
 * The functions CASEI and ACCENTI of CQL2 (OGC 21-065r2, sections 7.3 and 7.4), which map equivalent texts to equal ones. Literals have
 * at most 10,000 characters, and ids of tiles at most 240.
 */
export type FoldingFunction = 'casei' | 'accenti';

/**
 * Latin letters with a stroke, each followed by its replacement. Unicode does not decompose strokes, but in the test data of CQL2
 * ACCENTI('København') is equal to ACCENTI('Kobenhavn').
 */
const STROKES = 'ØOøoĐDđdĦHħhŁLłlŦTŧtɃBƀbƗIɨiƵZƶzǤGǥgȺAⱥaȻCȼcɆEɇeɈJɉjɌRɍrɎYɏyⱣPᵽpꝀKꝁk';
const WITHOUT_STROKE = new Map(
  Array.from(STROKES.matchAll(/(.)(.)/gu), ([, with_, without]) => [with_, without]),
);
const STROKE = new RegExp(`[${[...WITHOUT_STROKE.keys()].join('')}]`, 'gu');

/** The blocks "Combining Diacritical Marks". They do not contain vowel signs and other marks that are letters of their script. */
const ACCENT = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;

/**
 * Maximum length of a run of combining marks: the limit of the Stream-Safe Text Format (Unicode Standard Annex 15). Normalisation
 * sorts each run, in a time quadratic in its length. Further marks are dropped.
 */
const MAX_COMBINING_MARKS = 30;
const LONG_RUN = new RegExp(`(\\p{M}{${MAX_COMBINING_MARKS}})\\p{M}+`, 'gu');

const ASCII = /^[\0-\x7f]*$/;

/**
 * Both take time linear in the length of the text. A fold that is applied again changes nothing, even if the other fold was applied in
 * between.
 */
export const foldingFunctions: Record<FoldingFunction, (text: string) => string> = {
  /**
   * Full case folding of Unicode. Three mappings are equivalent to it, applied to each character: a small sigma depends on its
   * neighbours.
   */
  casei: (text) =>
    ASCII.test(text)
      ? text.toLowerCase()
      : Array.from(text, (one) => (one === 'ı' ? one : one.toLowerCase().toUpperCase().toLowerCase())).join(
          '',
        ),
  accenti: (text) =>
    ASCII.test(text)
      ? text
      : text
          .replace(ACCENT, '')
          .replace(LONG_RUN, '$1')
          .normalize('NFD')
          .replace(ACCENT, '')
          .replace(STROKE, (letter) => WITHOUT_STROKE.get(letter)!)
          .normalize('NFC'),
};
