/** Patterns of LIKE: `%` for any text, `_` for one character, a backslash before a character that stands for itself. */

const ANY_TEXT = Symbol('%');
const ONE_CHARACTER = Symbol('_');

/** A text matches as a whole, case and all. The work grows with the length of the text times that of the pattern. */
export function likeMatcher(pattern: string): (text: string) => boolean {
  const parts = partsOf(pattern);
  return (text) => {
    // Characters beyond the first 65,536 take two places of a string.
    const characters: ArrayLike<string> = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
    let at = 0;
    let part = 0;
    // Where the last % stands, and what it takes so far: it alone has to give way, because those before it took the least.
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

/** What every text that matches begins with, and whether everything that begins with it matches. */
export function likePrefix(pattern: string): { prefix: string; isAll: boolean } {
  const parts = partsOf(pattern);
  const end = parts.findIndex((part) => typeof part === 'symbol');
  const prefix = parts.slice(0, end < 0 ? undefined : end).join('');
  return { prefix, isAll: end === parts.length - 1 && parts[end] === ANY_TEXT };
}

/** The pattern of all texts with this in it as it is. */
export function literalPattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

/** The pattern of the folded texts of those that match a pattern. */
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
