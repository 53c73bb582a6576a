/** Cells of a CSV file (RFC 4180) with a library. A cell cannot contain line breaks. */

/** Text that spreadsheets interpret as a formula. They do not interpret text after an apostrophe. */
const FORMULA = /^[\s']*[=+\-@]/;
const MARKED = /^'(?=[\s']*[=+\-@])/;

/** The name of a spectrum as a cell. `parseCsvLine` returns it with spaces instead of control characters and line breaks. */
export function quoteCsvName(name: string): string {
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ');
  const text = FORMULA.test(line) ? `'${line}` : line;
  return /[",]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The cells of a line, without quotes and without the apostrophe before text that looks like a formula. */
export function parseCsvLine(line: string): string[] {
  const cells = line.match(/(?<=^|,)("(?:[^"]|"")*"|[^,]*)(?=,|$)/g) ?? [];
  return cells.map((cell) =>
    cell
      .trim()
      .replace(/^"(.*)"$/s, '$1')
      .replaceAll('""', '"')
      .replace(MARKED, ''),
  );
}
