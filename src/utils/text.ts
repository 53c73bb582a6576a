/** Texts: names of others in one line, numbers with their unit, keys of reasons, order, and addresses of files. */

/** Control characters, and those that reverse the direction of the text after them. */
const INVISIBLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text as one line that cannot move the cursor of a terminal or begin a line of a log: names in files and requests of others may contain
 * anything. Control characters become their pictures (U+2400).
 */
export const visibleText = (text: string): string =>
  text.replace(/[\t\r\n]+/g, ' ').replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0);
    if (code === 0x7f) return '\u2421';
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd';
  });

/** "1 place", "2 places". */
export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** A key that is the same for reasons that differ only in numbers. */
export const reasonKey = (reason: string) => reason.replace(/-?\d+(\.\d+)?(e[-+]?\d+)?/gi, '0');

/** Orders texts by their UTF-16 code units, the same on every machine, unlike `localeCompare`. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** True for the address of a file on a host: `http://`, `https://` or `s3://`. */
export const isRemoteAddress = (text: string): boolean => /^(https?|s3):\/\//i.test(text);

/** Groups failures that differ only in the path that their messages name. */
export function groupFailures<T extends { path: string; code: string; message: string }>(
  failures: readonly T[],
): T[][] {
  const groups = new Map<string, T[]>();
  for (const failure of failures) {
    const key = `${failure.code} ${failure.message.replaceAll(failure.path, '')}`;
    groups.set(key, [...(groups.get(key) ?? []), failure]);
  }
  return [...groups.values()];
}
