/** The syntax tree of expressions, and their recursive-descent parser, with one method per level of precedence. */
import { badExpression } from './errors.js';

export type Operator = '+' | '-' | '*' | '/' | '**' | '<' | '<=' | '>' | '>=' | '==' | '!=';

/** Functions and their number of arguments; `Infinity` means two or more. */
const FUNCTIONS = {
  where: 3,
  min: Infinity,
  max: Infinity,
  abs: 1,
  sqrt: 1,
  log: 1,
} as const;

export type FunctionName = keyof typeof FUNCTIONS;

export type Expression =
  | { kind: 'number'; value: number }
  | { kind: 'band'; name: string; position: number }
  | { kind: 'negate'; operand: Expression }
  | { kind: 'operation'; operator: Operator; left: Expression; right: Expression }
  | { kind: 'call'; name: FunctionName; args: Expression[] };

const MAX_LENGTH = 1000;
/** Nesting of brackets, signs and powers. */
const MAX_DEPTH = 50;
/** Each operation is a pass over all pixels. */
const MAX_OPERATIONS = 100;

interface Token {
  kind: 'number' | 'name' | 'symbol' | 'end';
  text: string;
  position: number;
}

/**
 * | precedence | operators |
 * |---|---|
 * | lowest | `< <= > >= == !=` (not chained) |
 * | | `+ -` |
 * | | `* /` |
 * | | unary `- +` |
 * | highest | `**` (right-associative; its exponent may have a sign) |
 *
 * Names consist of letters, digits and `_`, and may begin with a digit (`10m_b1`). Wavelengths (`860nm`, `2.2um`) are also names. Throws
 * TW_IMAGERY_EXPRESSION.
 */
export function parseExpression(text: string): Expression {
  return parseExpressions([text])[0];
}

/** Parses expressions that are evaluated together and share one limit of operations. Throws TW_IMAGERY_EXPRESSION. */
export function parseExpressions(texts: string[]): Expression[] {
  const total = { operations: 0 };
  return texts.map((text) => {
    if (text.length > MAX_LENGTH)
      throw badExpression(MAX_LENGTH, `it is longer than ${MAX_LENGTH} characters`);
    return new Parser(tokensOf(text), total).parse();
  });
}

/** Digits followed by a letter are the start of a name, not a number. */
const TOKEN_PATTERN =
  /\s*(?:(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?<name>\d+\.\d+[nu]m\b|\w+)|(?<symbol>\*\*|[<>=!]=|[-+*/<>(),]))/y;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  TOKEN_PATTERN.lastIndex = 0;
  while (TOKEN_PATTERN.lastIndex < end) {
    const from = TOKEN_PATTERN.lastIndex;
    const match = TOKEN_PATTERN.exec(text);
    if (!match) {
      const position = from + /^\s*/.exec(text.slice(from))![0].length;
      const sign = text[position] === '"' ? `'"'` : `"${text[position]}"`;
      throw badExpression(position, `${sign} has no meaning here`);
    }
    const { number, name, symbol } = match.groups!;
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'symbol';
    const token = number ?? name ?? symbol;
    tokens.push({ kind, text: token, position: TOKEN_PATTERN.lastIndex - token.length });
  }
  tokens.push({ kind: 'end', text: '', position: end });
  return tokens;
}

const COMPARISONS = ['<', '<=', '>', '>=', '==', '!='];

class Parser {
  private at = 0;
  private depth = 0;

  constructor(
    private readonly tokens: Token[],
    /** Shared with the other expressions. */
    private readonly total: { operations: number },
  ) {}

  parse(): Expression {
    const expression = this.comparison();
    if (this.token.kind !== 'end') throw this.unexpected('an operator or the end');
    return expression;
  }

  private comparison(): Expression {
    const left = this.sum();
    return this.isAt(COMPARISONS) ? this.operation(left, () => this.sum()) : left;
  }

  private sum(): Expression {
    let left = this.product();
    while (this.isAt(['+', '-'])) left = this.operation(left, () => this.product());
    return left;
  }

  private product(): Expression {
    let left = this.signed();
    while (this.isAt(['*', '/'])) left = this.operation(left, () => this.signed());
    return left;
  }

  private signed(): Expression {
    if (!this.isAt(['-', '+'])) return this.power();
    const { text } = this.next();
    const operand = this.deeper(() => this.signed());
    if (text === '+') return operand;
    this.count();
    return { kind: 'negate', operand };
  }

  private power(): Expression {
    const base = this.primary();
    return this.isAt(['**']) ? this.operation(base, () => this.deeper(() => this.signed())) : base;
  }

  private primary(): Expression {
    const { kind, text, position } = this.token;
    if (kind === 'number') {
      this.next();
      return { kind: 'number', value: Number(text) };
    }
    if (this.isAt(['('])) {
      this.next();
      const inner = this.deeper(() => this.comparison());
      this.expect(')');
      return inner;
    }
    if (kind !== 'name') throw this.unexpected('a number, a band, a function or "("');
    this.next();
    return this.isAt(['(']) ? this.call(text, position) : { kind: 'band', name: text, position };
  }

  private call(name: string, position: number): Expression {
    if (!Object.hasOwn(FUNCTIONS, name)) {
      const known = Object.keys(FUNCTIONS).join(', ');
      throw badExpression(position, `there is no function "${name}"; there are ${known}`);
    }
    const args: Expression[] = [];
    do {
      this.next();
      args.push(this.deeper(() => this.comparison()));
    } while (this.isAt([',']));
    this.expect(')');
    const wanted = FUNCTIONS[name as FunctionName];
    if (wanted === Infinity ? args.length < 2 : args.length !== wanted) {
      const count = wanted === Infinity ? '2 or more' : String(wanted);
      throw badExpression(position, `${name} takes ${count} values, not ${args.length}`);
    }
    this.count(args.length);
    return { kind: 'call', name: name as FunctionName, args };
  }

  private operation(left: Expression, readRight: () => Expression): Expression {
    const operator = this.next().text as Operator;
    this.count();
    return { kind: 'operation', operator, left, right: readRight() };
  }

  private count(operations = 1): void {
    this.total.operations += operations;
    if (this.total.operations > MAX_OPERATIONS)
      throw badExpression(
        this.token.position,
        `there are more than ${MAX_OPERATIONS} operations in all expressions`,
      );
  }

  private deeper<T>(read: () => T): T {
    if (++this.depth > MAX_DEPTH)
      throw badExpression(this.token.position, `it is nested more than ${MAX_DEPTH} deep`);
    const result = read();
    this.depth--;
    return result;
  }

  private get token(): Token {
    return this.tokens[this.at];
  }

  private next(): Token {
    return this.tokens[this.at++];
  }

  private isAt(symbols: string[]): boolean {
    return this.token.kind === 'symbol' && symbols.includes(this.token.text);
  }

  private expect(symbol: string): void {
    if (!this.isAt([symbol])) throw this.unexpected(`"${symbol}"`);
    this.next();
  }

  private unexpected(wanted: string) {
    const { kind, text, position } = this.token;
    const hint = this.lacksOperator() ? '; a URL needs %2B in place of +' : '';
    return badExpression(
      position,
      `${wanted} is expected, not ${kind === 'end' ? 'the end' : `"${text}"`}${hint}`,
    );
  }

  /** True if only spaces separate a value from the previous value, because a URL decodes + in a query as a space. */
  private lacksOperator(): boolean {
    const before = this.tokens[this.at - 1];
    const isValue = ({ kind, text }: Token, bracket: string) =>
      kind === 'number' || kind === 'name' || text === bracket;
    return (
      before !== undefined &&
      isValue(before, ')') &&
      isValue(this.token, '(') &&
      before.position + before.text.length < this.token.position
    );
  }
}
