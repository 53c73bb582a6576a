/** Cells of a CSV (RFC 4180) that holds a library. A cell ends on its line. */

/** Spreadsheets take such text for a formula, and text after an apostrophe as it is. */
const FORMULA = /^[\s']*[=+\-@]/;
const MARKED = /^'(?=[\s']*[=+\-@])/;

/** The name of a spectrum as a cell. `parseCsvLine` returns it with blanks in place of control characters and line breaks. */
export function quoteCsvName(name: string): string {
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ');
  const text = FORMULA.test(line) ? `'${line}` : line;
  return /[",]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The cells of a line, without their quotes and without the apostrophe before what a spreadsheet takes for a formula. */
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
