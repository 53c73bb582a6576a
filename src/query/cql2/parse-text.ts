/**
 * CQL2 text (OGC 21-065r2, annex B) to CQL2 JSON, by recursive descent. What names and values mean is left to the reader of
 * CQL2 JSON; `positions` tells it where its objects stand in the text.
 */
import { filterTooComplex } from '../errors.js';
import { MAX_DEPTH } from '../filter/filter.js';
import { parseGeometry } from './parse-wkt.js';
import { TokenStream, tokenize } from './tokens.js';

export interface ParsedText {
  json: unknown;
  /** Position of objects of `json` in the text, from 1. */
  positions: WeakMap<object, number>;
}

const COMPARISONS = ['=', '<>', '<=', '>=', '<', '>'];
const RESERVED = new Set('AND OR NOT LIKE BETWEEN IN IS NULL TRUE FALSE'.split(' '));
const ARITHMETIC = ['+', '-', '*', '/', '%', '^', 'DIV'];

/** Throws TW_QUERY_CQL2_SYNTAX, TW_QUERY_CQL2_UNSUPPORTED, TW_QUERY_TOO_COMPLEX. */
export function parseCql2Text(source: string): ParsedText {
  return new Parser(new TokenStream(tokenize(source))).parse();
}

class Parser {
  private readonly positions = new WeakMap<object, number>();
  private depth = 0;

  constructor(private readonly tokens: TokenStream) {}

  parse(): ParsedText {
    const json = this.disjunction();
    if (this.tokens.peek().kind !== 'end') this.tokens.fail('AND, OR or the end');
    return { json, positions: this.positions };
  }

  private disjunction(): unknown {
    return this.chain('OR', () => this.chain('AND', () => this.factor()));
  }

  private chain(word: 'AND' | 'OR', part: () => unknown): unknown {
    const { position } = this.tokens;
    const args = [part()];
    while (this.tokens.take(word)) args.push(part());
    return args.length === 1 ? args[0] : this.node(word.toLowerCase(), args, position);
  }

  private factor(): unknown {
    const { tokens } = this;
    const { position } = tokens;
    if (tokens.take('NOT')) return this.node('not', [this.deeper(() => this.factor())], position);
    if (tokens.take('(')) {
      const inner = this.deeper(() => this.disjunction());
      tokens.expect(')');
      return inner;
    }
    const isTruth = (tokens.sees('TRUE') || tokens.sees('FALSE')) && !this.comparisonFollows();
    return isTruth ? tokens.next().text.toUpperCase() === 'TRUE' : this.predicate();
  }

  private comparisonFollows(): boolean {
    return COMPARISONS.some((sign) => this.tokens.sees(sign, 1));
  }

  /** Brackets and NOT. */
  private deeper<T>(parse: () => T): T {
    if (++this.depth > MAX_DEPTH) throw filterTooComplex('levels of brackets', this.depth, MAX_DEPTH);
    const value = parse();
    this.depth--;
    return value;
  }

  private predicate(): unknown {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (kind === 'name' && /^[sta]_/i.test(text) && tokens.sees('(', 1)) {
      if (/^a_/i.test(text)) tokens.unsupported(`the array function ${text}`);
      tokens.next();
      return this.node(text.toLowerCase(), this.pair(), position);
    }
    const left = this.operand('a property, NOT or "("');
    const sign = COMPARISONS.find((one) => tokens.take(one));
    if (sign) return this.node(sign, [left, this.operand('a value')], position);
    if (tokens.take('IS')) {
      const negated = tokens.take('NOT');
      tokens.expect('NULL');
      return this.negated(negated, this.node('isNull', [left], position), position);
    }
    const negated = tokens.take('NOT');
    return this.negated(negated, this.node(...this.listPredicate(left), position), position);
  }

  private listPredicate(left: unknown): [op: string, args: unknown[]] {
    const { tokens } = this;
    if (tokens.take('LIKE')) {
      if (tokens.peek().kind === 'name') tokens.unsupported(`the function ${tokens.peek().text}`);
      return ['like', [left, tokens.expectKind('text', 'a pattern in quotes')]];
    }
    if (tokens.take('BETWEEN')) {
      const low = this.operand('a value');
      tokens.expect('AND');
      return ['between', [left, low, this.operand('a value')]];
    }
    if (tokens.take('IN')) {
      tokens.expect('(');
      const values = [this.operand('a value')];
      while (tokens.take(',')) values.push(this.operand('a value'));
      tokens.expect(')');
      return ['in', [left, values]];
    }
    return tokens.fail('a comparison (=, <>, <, <=, >, >=, LIKE, BETWEEN, IN, IS NULL)');
  }

  private negated(negated: boolean, node: object, position: number): object {
    return negated ? this.node('not', [node], position) : node;
  }

  /** The two arguments of a spatial or temporal function. */
  private pair(): unknown[] {
    const { tokens } = this;
    tokens.expect('(');
    const first = this.operand('a property, a geometry or a time');
    tokens.expect(',');
    const second = this.operand('a property, a geometry or a time');
    tokens.expect(')');
    return [first, second];
  }

  private operand(expected: string): unknown {
    const value = this.simpleOperand(expected);
    const sign = ARITHMETIC.find((one) => this.tokens.sees(one));
    if (sign) this.tokens.unsupported('arithmetic');
    return value;
  }

  private simpleOperand(expected: string): unknown {
    const { tokens } = this;
    const { position } = tokens;
    const { kind, text } = tokens.peek();
    if (kind === 'text') return tokens.next().text;
    if (kind === 'number' || tokens.sees('-') || tokens.sees('+')) return tokens.signedNumber();
    if (kind === 'quotedName') return this.mark({ property: tokens.next().text }, position);
    if (tokens.sees('[')) tokens.unsupported('an array');
    if (kind !== 'name') return tokens.fail(expected);
    const word = text.toUpperCase();
    const literal = parseGeometry(tokens) ?? this.time(word);
    if (literal) return this.mark(literal, position);
    if (tokens.sees('(', 1) && !RESERVED.has(word)) tokens.unsupported(`the function ${text}`);
    if (word === 'TRUE' || word === 'FALSE') return tokens.next().text.toUpperCase() === 'TRUE';
    if (RESERVED.has(word)) return tokens.fail(expected);
    return this.mark({ property: tokens.next().text }, position);
  }

  /** DATE('...'), TIMESTAMP('...'), INTERVAL('...', '...'). */
  private time(word: string): object | undefined {
    const { tokens } = this;
    if (!['DATE', 'TIMESTAMP', 'INTERVAL'].includes(word) || !tokens.sees('(', 1)) return undefined;
    tokens.next();
    tokens.expect('(');
    const instant = () => {
      if (tokens.peek().kind === 'name') tokens.unsupported('an interval of properties');
      return tokens.expectKind('text', 'a time in quotes');
    };
    const first = instant();
    if (word !== 'INTERVAL') {
      tokens.expect(')');
      return word === 'DATE' ? { date: first } : { timestamp: first };
    }
    tokens.expect(',');
    const second = instant();
    tokens.expect(')');
    return { interval: [first, second] };
  }

  private node(op: string, args: unknown[], position: number): object {
    return this.mark({ op, args }, position);
  }

  private mark<T extends object>(value: T, position: number): T {
    this.positions.set(value, position);
    return value;
  }
}
