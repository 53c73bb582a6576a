/** Patterns of LIKE: `%` stands for any text, `_` for one character; a backslash escapes a character. */

const ANY_TEXT = Symbol('%');
const ONE_CHARACTER = Symbol('_');

/** Matches entire texts, case-sensitively. The time is proportional to the length of the text times that of the pattern. */
export function likeMatcher(pattern: string): (text: string) => boolean {
  const parts = partsOf(pattern);
  return (text) => {
    // Characters beyond the first 65,536 have two UTF-16 units.
    const characters: ArrayLike<string> = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
    let at = 0;
    let part = 0;
    // Part of the last %, and the end of its match. Only the last % backtracks, because earlier ones have matched as little as possible.
    let anyPart = -1;
    let anyEnd = 0;
    while (at < characters.length) {
      if (parts[part] === ANY_TEXT) {
        anyPart = part++;
        anyEnd = at;
      } else if (parts[part] === ONE_CHARACTER || parts[part] === characters[at]) {
        part++;
        at++;
      } else if (anyPart >= 0) {
        part = anyPart + 1;
        at = ++anyEnd;
      } else {
        return false;
      }
    }
    while (parts[part] === ANY_TEXT) part++;
    return part === parts.length;
  };
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
