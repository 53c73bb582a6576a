/** Parses the text of an ENVI header: lines of `key = value`, where a value in braces may span several lines. */
import { corrupt } from '../errors.js';

/** Fields by their names in lower case, with single blanks. */
export type EnviFields = ReadonlyMap<string, string>;

/** Limit of a header in bytes. The largest known ones, with 600 bands and all lists, have 60 kB. */
export const MAX_HEADER_BYTES = 2 ** 22;

/** True if bytes are the start of an ENVI header. Editors put a byte order mark before it. */
export function isEnviHeader(start: Uint8Array): boolean {
  return /^(\xef\xbb\xbf)?ENVI\s/.test(Buffer.from(start.subarray(0, 8)).toString('latin1'));
}

/**
 * Parses a header. Lines that start with `;` are comments. If a field occurs twice, the last one counts. Throws
 * TW_RASTER_CORRUPT for an unclosed brace.
 */
export function parseEnviHeader(text: string, path: string): EnviFields {
  const fields = new Map<string, string>();
  const lines = text.split(/\r\n|[\r\n]/).filter((line) => !line.trimStart().startsWith(';'));
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const equals = line.indexOf('=');
    if (equals < 0) continue;
    const name = line.slice(0, equals).trim().toLowerCase().replace(/\s+/g, ' ');
    const parts = [line.slice(equals + 1).trim()];
    if (parts[0]!.startsWith('{')) {
      while (!parts.at(-1)!.includes('}')) {
        if (++i === lines.length) throw corrupt(path, `the braces of "${name}" are not closed`);
        parts.push(lines[i]!);
      }
      fields.set(name, parts.join('\n').slice(1).replace(/\}.*$/s, '').trim());
    } else fields.set(name, parts[0]!);
  }
  return fields;
}

/** The items of a list; undefined if the field is missing. */
export function listField(fields: EnviFields, name: string): string[] | undefined {
  const text = fields.get(name);
  if (text === undefined || text === '') return undefined;
  return text.split(',').map((item) => item.trim());
}

/**
 * The numbers of a list of `count`; undefined if the field is missing. Some writers use square brackets, with blanks between
 * the items. Throws TW_RASTER_CORRUPT for another count, and for items that are not numbers.
 */
export function numberListField(
  fields: EnviFields,
  name: string,
  count: number,
  path: string,
): number[] | undefined {
  const text = fields
    .get(name)
    ?.replace(/^\[|\]$/g, '')
    .trim();
  if (!text) return undefined;
  const items = text.split(/\s*,\s*|\s+/).filter((item) => item !== '');
  if (items.length !== count)
    throw corrupt(path, `"${name}" lists ${items.length} values, and there are ${count} bands`);
  return items.map((item) => {
    const value = Number(item);
    if (Number.isNaN(value) && !/^[-+]?nan$/i.test(item))
      throw corrupt(path, `"${name}" holds "${item.slice(0, 40)}", which is not a number`);
    return value;
  });
}

/** An integer of at least `least`. Throws TW_RASTER_CORRUPT if the field is missing or invalid. */
export function integerField(
  fields: EnviFields,
  name: string,
  { least, otherwise }: { least: number; otherwise?: number },
  path: string,
): number {
  const text = fields.get(name);
  if (text === undefined || text === '') {
    if (otherwise !== undefined) return otherwise;
    throw corrupt(path, `its header has no "${name}"`);
  }
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw corrupt(
      path,
      `its header says ${name} = ${text.slice(0, 40)}, which is not an integer of at least ${least}`,
    );
  return value;
}
