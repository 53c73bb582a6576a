/**
 * Parses CQL2 text (OGC 21-065r2, annex B) to CQL2 JSON, by recursive descent. The reader of CQL2 JSON checks names and values;
 * `positions` has the positions of its objects in the text, for messages.
 */
import { badCql2Text, filterTooComplex, unsupportedCql2 } from '../errors.js';
import { MAX_DEPTH } from '../filter.js';

/** A token of CQL2 text. */
interface Token {
  kind: 'name' | 'quotedName' | 'text' | 'number' | 'sign' | 'end';
  /** Names and texts without their quotes. */
  text: string;
  /** Position in the text, from 1. */
  position: number;
}

/** Maximum number of characters, enough for the maximum number of points in a filter. */
const MAX_TEXT_LENGTH = 500_000;

const TOKEN_PATTERNS: [Token['kind'], RegExp][] = [
  ['number', /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/iuy],
  ['name', /[\p{L}_:][\p{L}\p{M}\p{N}_:.]*/uy],
  ['quotedName', /"(?:[^"]|"")+"/uy],
  ['text', /'(?:[^'\\]|''|\\.)*'/suy],
  ['sign', /<>|<=|>=|[-=<>(),+*/%^[\]]/uy],
];

/** The tokens of a text; the last one has the kind `end`. Throws TW_QUERY_CQL2_SYNTAX, TW_QUERY_TOO_COMPLEX. */
function tokenize(source: string): Token[] {
  if (source.length > MAX_TEXT_LENGTH) throw filterTooComplex('characters', source.length, MAX_TEXT_LENGTH);
  const tokens: Token[] = [];
  const space = /\s*/uy;
  for (let at = 0; ; ) {
    space.lastIndex = at;
    at += space.exec(source)![0].length;
    if (at === source.length) break;
    const token = tokenAt(source, at);
    tokens.push(token);
    at = token.end;
  }
  return [...tokens, { kind: 'end', text: '', position: source.length + 1 }];
}

function tokenAt(source: string, at: number): Token & { end: number } {
  for (const [kind, pattern] of TOKEN_PATTERNS) {
    pattern.lastIndex = at;
    const raw = pattern.exec(source)?.[0];
    if (raw !== undefined)
      return { kind, text: contentOf(kind, raw), position: at + 1, end: at + raw.length };
  }
  if (source[at] === "'") throw badCql2Text(at + 1, 'a text that ends with a quote', 'one without an end');
  throw badCql2Text(at + 1, 'a token of CQL2', `"${String.fromCodePoint(source.codePointAt(at)!)}"`);
}

function contentOf(kind: Token['kind'], raw: string): string {
  // In one pass from the left: a double backslash remains, and does not escape the quote after it.
  if (kind === 'text')
    return raw.slice(1, -1).replace(/\\\\|\\'|''/g, (part) => (part === '\\\\' ? part : "'"));
  return kind === 'quotedName' ? raw.slice(1, -1).replaceAll('""', '"') : raw;
}

const shown = ({ kind, text }: Token) =>
  kind === 'end' ? 'the end' : `"${text.length > 40 ? `${text.slice(0, 40)}...` : text}"`;

/** Tokens with a read position. */
class TokenStream {
  private at = 0;

  constructor(private readonly tokens: Token[]) {}

  get position(): number {
    return this.peek().position;
  }

  peek(ahead = 0): Token {
    return this.tokens[Math.min(this.at + ahead, this.tokens.length - 1)]!;
  }

  next(): Token {
    const token = this.peek();
    if (token.kind !== 'end') this.at++;
    return token;
  }

  /** True if this word or sign follows, in any case. */
  nextIs(word: string, ahead = 0): boolean {
    const { kind, text } = this.peek(ahead);
    return (kind === 'name' || kind === 'sign') && text.toUpperCase() === word;
  }

  /** Consumes a word or sign if it follows. */
  accept(word: string): boolean {
    const follows = this.nextIs(word);
    if (follows) this.at++;
    return follows;
  }

  expect(word: string): void {
    if (!this.accept(word)) this.fail(/\w/.test(word) ? word : `"${word}"`);
  }

  expectKind(kind: 'text' | 'number', expected: string): string {
    if (this.peek().kind !== kind) this.fail(expected);
    return this.next().text;
  }

  /** A number with an optional sign. */
  signedNumber(): number {
    const negative = this.accept('-');
    if (!negative) this.accept('+');
    if (this.peek().kind === 'number' && Number(this.peek().text) === Infinity)
      this.fail('a number up to 1.8e308, the largest of 64 bits');
    const value = Number(this.expectKind('number', 'a number'));
    return negative ? -value : value;
  }

  fail(expected: string): never {
    throw badCql2Text(this.position, expected, shown(this.peek()));
  }

  unsupported(what: string): never {
    throw unsupportedCql2(`at character ${this.position}`, what);
  }
}

type GeometryReader = (tokens: TokenStream) => unknown;

const listReader =
  (item: GeometryReader): GeometryReader =>
  (tokens) => {
    tokens.expect('(');
    const items = [item(tokens)];
    while (tokens.accept(',')) items.push(item(tokens));
    tokens.expect(')');
    return items;
  };

/** Two numbers, and an optional height. */
const point: GeometryReader = (tokens) => {
  const numbers = [tokens.signedNumber(), tokens.signedNumber()];
  if (!tokens.nextIs(',') && !tokens.nextIs(')')) numbers.push(tokens.signedNumber());
  return numbers;
};

const pointInBrackets: GeometryReader = (tokens) => {
  tokens.expect('(');
  const value = point(tokens);
  tokens.expect(')');
  return value;
};

const points = listReader(point);

const GEOMETRY_READERS: Record<string, [type: string, read: GeometryReader]> = {
  POINT: ['Point', pointInBrackets],
  LINESTRING: ['LineString', points],
  POLYGON: ['Polygon', listReader(points)],
  MULTIPOINT: [
    'MultiPoint',
    listReader((tokens) => (tokens.nextIs('(') ? pointInBrackets(tokens) : point(tokens))),
  ],
  MULTILINESTRING: ['MultiLineString', listReader(points)],
  MULTIPOLYGON: ['MultiPolygon', listReader(listReader(points))],
};

/**
 * Parses a geometry literal, well-known text or BBOX, to GeoJSON, which is checked later. Undefined if the next token does not begin one.
 */
function parseGeometry(tokens: TokenStream): object | undefined {
  const word = tokens.peek().text.toUpperCase();
  const withHeight = tokens.nextIs('Z', 1);
  if (!tokens.nextIs('(', withHeight ? 2 : 1)) return undefined;
  if (word === 'BBOX') {
    tokens.next();
    return { bbox: listReader((inside) => inside.signedNumber())(tokens) };
  }
  const collection = word === 'GEOMETRYCOLLECTION';
  const reader = GEOMETRY_READERS[word];
  if (!collection && !reader) return undefined;
  tokens.next();
  if (withHeight) tokens.next();
  if (reader) return { type: reader[0], coordinates: reader[1](tokens) };
  return { type: 'GeometryCollection', geometries: listReader(partOfCollection)(tokens) };
}

const partOfCollection: GeometryReader = (tokens) => {
  if (tokens.nextIs('GEOMETRYCOLLECTION')) tokens.fail('a geometry other than a collection');
  return parseGeometry(tokens) ?? tokens.fail('a geometry');
};

interface ParsedText {
  json: unknown;
  /** Position of objects of `json` in the text, from 1. */
  positions: WeakMap<object, number>;
}

/** JSON of a part of the text, and its type. `truth`: TRUE or FALSE, which are conditions and values. */
interface ParsedPart {
  json: unknown;
  is: 'condition' | 'value' | 'truth';
}

const COMPARISONS = ['=', '<>', '<=', '>=', '<', '>'];
const RESERVED_WORDS = new Set('AND OR NOT LIKE BETWEEN IN IS NULL TRUE FALSE'.split(' '));
const FOLDING_FUNCTIONS = ['CASEI', 'ACCENTI'];
const EXPECTED_COMPARISON = 'a comparison (=, <>, <, <=, >, >=, LIKE, BETWEEN, IN, IS NULL)';

const valuePart = (json: unknown): ParsedPart => ({ json, is: 'value' });
const conditionPart = (json: unknown): ParsedPart => ({ json, is: 'condition' });

/** Throws TW_QUERY_CQL2_SYNTAX, TW_QUERY_CQL2_UNSUPPORTED, TW_QUERY_TOO_COMPLEX. */
export function parseCql2Text(source: string): ParsedText {
  return new Parser(new TokenStream(tokenize(source))).parse();
}

class Parser {
  private readonly positions = new WeakMap<object, number>();
  private depth = 0;

  constructor(private readonly tokens: TokenStream) {}

  parse(): ParsedText {
    const part = this.disjunction();
    const json = this.conditionOf(part);
    if (this.tokens.peek().kind !== 'end') this.tokens.fail('AND, OR or the end');
    return { json, positions: this.positions };
  }

  private disjunction(): ParsedPart {
    return this.chain('OR', () => this.chain('AND', () => this.factor()));
  }

  /** A single part in brackets may also be a value, followed by an operator. */
  private chain(word: 'AND' | 'OR', part: () => ParsedPart): ParsedPart {
    const { position } = this.tokens;
    const first = part();
    if (!this.tokens.nextIs(word)) return first;
    const args = [this.conditionOf(first)];
    while (this.tokens.accept(word)) args.push(this.conditionOf(part()));
    return conditionPart(this.node(word.toLowerCase(), args, position));
  }

  private conditionOf({ json, is }: ParsedPart): unknown {
    return is === 'value' ? this.tokens.fail(EXPECTED_COMPARISON) : json;
  }

  private factor(): ParsedPart {
    const { tokens } = this;
    const { position } = tokens;
    if (!tokens.accept('NOT')) return this.predicate();
    const arg = this.conditionOf(this.withDepthLimit(() => this.factor()));
    return conditionPart(this.node('not', [arg], position));
  }

  /** Limits the levels of brackets, NOT and functions. */
  private withDepthLimit<T>(parse: () => T): T {
    if (++this.depth > MAX_DEPTH) throw filterTooComplex('levels of brackets', this.depth, MAX_DEPTH);
    const parsed = parse();
    this.depth--;
    return parsed;
  }

  private predicate(): ParsedPart {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (kind === 'name' && /^[sta]_/i.test(text) && tokens.nextIs('(', 1)) {
      if (/^a_/i.test(text)) tokens.unsupported(`the array function ${text}`);
      tokens.next();
      const args = this.pair(() => this.operand('a property, a geometry or a time'));
      return conditionPart(this.node(text.toLowerCase(), args, position));
    }
    const left = this.sum('a property, NOT or "("');
    if (tokens.accept('IS')) {
      const negated = tokens.accept('NOT');
      tokens.expect('NULL');
      return this.negated(negated, this.node('isNull', [left.json], position), position);
    }
    if (left.is === 'condition') return left;
    const sign = COMPARISONS.find((one) => tokens.accept(one));
    if (sign) return conditionPart(this.node(sign, [left.json, this.operand('a value')], position));
    const negated = left.is === 'value' && tokens.accept('NOT');
    const list = this.listPredicate(left.json);
    if (list) return this.negated(negated, this.node(...list, position), position);
    return negated ? tokens.fail('LIKE, BETWEEN or IN, or NOT before the comparison') : left;
  }

  private listPredicate(left: unknown): [op: string, args: unknown[]] | undefined {
    const { tokens } = this;
    if (tokens.accept('LIKE')) return ['like', [left, this.pattern()]];
    if (tokens.accept('BETWEEN')) {
      const low = this.operand('a value');
      tokens.expect('AND');
      return ['between', [left, low, this.operand('a value')]];
    }
    if (tokens.accept('IN')) {
      tokens.expect('(');
      const values = [this.operand('a value')];
      while (tokens.accept(',')) values.push(this.operand('a value'));
      tokens.expect(')');
      return ['in', [left, values]];
    }
    return undefined;
  }

  private negated(negated: boolean, node: object, position: number): ParsedPart {
    return conditionPart(negated ? this.node('not', [node], position) : node);
  }

  /** A text in quotes, or a function of texts with a pattern as its argument. */
  private pattern(): unknown {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (kind === 'name' && tokens.nextIs('(', 1)) {
      if (!FOLDING_FUNCTIONS.includes(text.toUpperCase()))
        tokens.unsupported(`the function ${text} in a pattern`);
      return this.fold(position, () => this.pattern());
    }
    return tokens.expectKind('text', 'a pattern in quotes');
  }

  /** CASEI(...) or ACCENTI(...). */
  private fold(position: number, argument: () => unknown): object {
    const { tokens } = this;
    const name = tokens.next().text.toLowerCase();
    tokens.expect('(');
    const arg = this.withDepthLimit(argument);
    tokens.expect(')');
    return this.node(name, [arg], position);
  }

  /** Two arguments in brackets. */
  private pair(argument: () => unknown): unknown[] {
    const { tokens } = this;
    tokens.expect('(');
    const first = argument();
    tokens.expect(',');
    const second = argument();
    tokens.expect(')');
    return [first, second];
  }

  /** An operand of a comparison or a function. The reader reports a condition in brackets as an error. */
  private operand(expected: string): unknown {
    return this.sum(expected).json;
  }

  private sum(expected: string): ParsedPart {
    return this.arithmetic(['+', '-'], () =>
      this.arithmetic(['*', '/', '%', 'DIV'], () => this.power(expected)),
    );
  }

  /** Operators of the same precedence, from left to right. */
  private arithmetic(signs: string[], part: () => ParsedPart): ParsedPart {
    const { tokens } = this;
    let left = part();
    for (;;) {
      const { position } = tokens;
      const sign = left.is === 'value' ? signs.find((one) => tokens.accept(one)) : undefined;
      if (sign === undefined) return left;
      left = valuePart(this.node(sign.toLowerCase(), [left.json, part().json], position));
    }
  }

  private power(expected: string): ParsedPart {
    const { tokens } = this;
    const base = this.signed(expected);
    const { position } = tokens;
    if (base.is !== 'value' || !tokens.accept('^')) return base;
    const power = valuePart(this.node('^', [base.json, this.signed('a number').json], position));
    // The grammar of CQL2 allows one exponent: the order of two is not defined.
    if (tokens.nextIs('^')) tokens.fail('brackets around one of the powers, such as (a ^ b) ^ c');
    return power;
  }

  /** A minus sign has the highest precedence: -a ^ 2 is the square of -a. */
  private signed(expected: string): ParsedPart {
    const { tokens } = this;
    const { position } = tokens;
    const isNumber = tokens.peek(1).kind === 'number';
    if (!isNumber && tokens.accept('-'))
      return valuePart(this.node('*', [-1, this.primary('a number').json], position));
    return this.primary(expected);
  }

  private primary(expected: string): ParsedPart {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (tokens.accept('(')) {
      const inner = this.withDepthLimit(() => this.disjunction());
      tokens.expect(')');
      return inner;
    }
    if (kind === 'text') return valuePart(tokens.next().text);
    if (kind === 'number' || tokens.nextIs('-') || tokens.nextIs('+'))
      return valuePart(tokens.signedNumber());
    if (kind === 'quotedName') return valuePart(this.mark({ property: tokens.next().text }, position));
    if (tokens.nextIs('[')) tokens.unsupported('an array');
    if (kind !== 'name') return tokens.fail(expected);
    const word = text.toUpperCase();
    const literal = parseGeometry(tokens) ?? this.time(word);
    if (literal) return valuePart(this.mark(literal, position));
    if (tokens.nextIs('(', 1) && !RESERVED_WORDS.has(word)) {
      if (!FOLDING_FUNCTIONS.includes(word)) tokens.unsupported(`the function ${text}`);
      return valuePart(this.fold(position, () => this.operand('a text')));
    }
    if (word === 'TRUE' || word === 'FALSE')
      return { json: tokens.next().text.toUpperCase() === 'TRUE', is: 'truth' };
    if (RESERVED_WORDS.has(word)) return tokens.fail(expected);
    return valuePart(this.mark({ property: tokens.next().text }, position));
  }

  /** DATE('...'), TIMESTAMP('...'), INTERVAL('...', '...'). */
  private time(word: string): object | undefined {
    const { tokens } = this;
    if (!['DATE', 'TIMESTAMP', 'INTERVAL'].includes(word) || !tokens.nextIs('(', 1)) return undefined;
    tokens.next();
    if (word === 'INTERVAL') return { interval: this.pair(() => this.intervalEnd()) };
    tokens.expect('(');
    const time = tokens.expectKind('text', 'a time in quotes');
    tokens.expect(')');
    return word === 'DATE' ? { date: time } : { timestamp: time };
  }

  /** A time in quotes, or a property. */
  private intervalEnd(): unknown {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (kind === 'name' && tokens.nextIs('(', 1)) tokens.unsupported(`the function ${text} in an interval`);
    const isProperty = kind === 'quotedName' || (kind === 'name' && !RESERVED_WORDS.has(text.toUpperCase()));
    if (isProperty) return this.mark({ property: tokens.next().text }, position);
    return tokens.expectKind('text', "a time in quotes, '..' or a property");
  }

  private node(op: string, args: unknown[], position: number): object {
    return this.mark({ op, args }, position);
  }

  private mark<T extends object>(marked: T, position: number): T {
    this.positions.set(marked, position);
    return marked;
  }
}
