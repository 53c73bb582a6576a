/** JSON that a user wrote. The parser of JavaScript names a place of a fault in some of its messages only. */

/** Parses JSON. Throws a SyntaxError that states where the text is wrong, what belongs there and what was found. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`it is not JSON: ${describeFault(text)}`, { cause: error });
  }
}

/** Parses JSON that a program wrote. Throws the error that `fail` makes from the SyntaxError. */
export function parseJsonOr<T>(text: string, fail: (cause: unknown) => Error): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw fail(error);
  }
}

const SPACE = /[ \t\n\r]*/y;
/** The characters between two escapes. Control characters must be escaped. */
const PLAIN = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/** States of the parser, and words for the tokens that each accepts. */
const EXPECTED = {
  value: 'a value',
  first: 'a value or ]',
  name: 'a name in double quotes',
  firstName: 'a name in double quotes, or }',
  colon: 'a colon',
  nextInList: 'a comma or ]',
  nextMember: 'a comma or }',
  end: 'the end',
};

type Expected = keyof typeof EXPECTED;

/** By sign and state: the next state. */
const AFTER_SIGN: Record<string, Partial<Record<Expected, Expected>>> = {
  '[': { value: 'first', first: 'first' },
  '{': { value: 'firstName', first: 'firstName' },
  ':': { colon: 'value' },
  ',': { nextInList: 'value', nextMember: 'name' },
};
/** States in which a bracket may close the list or the object. */
const BEFORE_CLOSING: Record<string, Expected[]> = {
  ']': ['first', 'nextInList'],
  '}': ['firstName', 'nextMember'],
};

/** The first fault of a text that is not JSON. */
function describeFault(text: string): string {
  const open: string[] = [];
  let expected: Expected = 'value';
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const isFound = pattern.test(text);
    if (isFound) at = pattern.lastIndex;
    return isFound;
  };
  // One expression for whole strings would backtrack for ever in a string that does not end.
  const skipString = (): boolean => {
    const start = at;
    if (text[at] === '"') {
      at++;
      do skip(PLAIN);
      while (skip(ESCAPE));
      if (text[at] === '"') {
        at++;
        return true;
      }
    }
    at = start;
    return false;
  };
  const afterValue = (): Expected => {
    if (open.length === 0) return 'end';
    return open.at(-1) === '[' ? 'nextInList' : 'nextMember';
  };
  for (;;) {
    skip(SPACE);
    const sign = text[at] ?? '';
    const next: Expected | undefined = AFTER_SIGN[sign]?.[expected];
    if (next !== undefined) {
      if (sign === '[' || sign === '{') open.push(sign);
      at++;
      expected = next;
    } else if (BEFORE_CLOSING[sign]?.includes(expected)) {
      open.pop();
      at++;
      expected = afterValue();
    } else if ((expected === 'name' || expected === 'firstName') && skipString()) expected = 'colon';
    else if ((expected === 'value' || expected === 'first') && (skipString() || skip(SCALAR)))
      expected = afterValue();
    else return `expected ${EXPECTED[expected]} at ${placeOf(text, at)}, found ${findingAt(text, at)}`;
  }
}

function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

const MAX_FOUND_LENGTH = 20;

function findingAt(text: string, at: number): string {
  return at >= text.length
    ? 'the end'
    : JSON.stringify(text.slice(at, at + MAX_FOUND_LENGTH).split('\n', 1)[0]);
}
