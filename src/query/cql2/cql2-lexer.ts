/** Tokens of CQL2 text (OGC 21-065r2, annex B). */
import { badCql2Text, filterTooComplex, unsupportedCql2 } from '../errors.js';

export interface Token {
  kind: 'name' | 'quotedName' | 'text' | 'number' | 'sign' | 'end';
  /** Names and texts without their quotes. */
  text: string;
  /** Position in the text, from 1. */
  position: number;
}

/** Maximum number of characters, enough for the maximum number of points in a filter. */
const MAX_LENGTH = 500_000;

const PATTERNS: [Token['kind'], RegExp][] = [
  ['number', /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/iuy],
  ['name', /[\p{L}_:][\p{L}\p{M}\p{N}_:.]*/uy],
  ['quotedName', /"(?:[^"]|"")+"/uy],
  ['text', /'(?:[^'\\]|''|\\.)*'/suy],
  ['sign', /<>|<=|>=|[-=<>(),+*/%^[\]]/uy],
];

/** The tokens of a text; the last one has the kind `end`. Throws TW_QUERY_CQL2_SYNTAX, TW_QUERY_TOO_COMPLEX. */
export function tokenize(source: string): Token[] {
  if (source.length > MAX_LENGTH) throw filterTooComplex('characters', source.length, MAX_LENGTH);
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
  for (const [kind, pattern] of PATTERNS) {
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
export class TokenStream {
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
