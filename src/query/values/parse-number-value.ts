/** Parses a plain decimal number; NaN for anything else. Number() also accepts "", "0x10" and "Infinity". */
export function parseNumber(text: string): number {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
}
