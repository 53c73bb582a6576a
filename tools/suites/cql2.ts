/** Outcomes of CQL2 examples: text in `.txt` or `.cql`, JSON in `.json`. */
import { extname } from 'node:path';
import { TilewrightError } from '../../src/errors.js';
import { readCql2Json, readCql2Text } from '../../src/query/cql2/json.js';
import type { Outcome } from './raster.js';

/** Examples are in folders of this name. */
export function isCql2Example(path: string): boolean {
  return (
    /cql2/i.test(path) &&
    /[/\\]examples?[/\\]/.test(path) &&
    ['.txt', '.cql', '.json'].includes(extname(path))
  );
}

/** Queryables of each type, which replace unknown properties. */
const STAND_INS = ['eo:cloud_cover', 'platform', 'datetime', 'geometry'];
/** Maximum number of replaced properties of an example, because each is tried with each queryable. */
const MAX_REPLACED = 3;

export function cql2Outcome(source: string, isJson: boolean): Outcome {
  const read = isJson ? (text: string) => readCql2Json(JSON.parse(text)) : readCql2Text;
  const first = refusal(read, source);
  if (!first) return { name: 'accepted', look: false };
  const found = withStandIns(read, source, MAX_REPLACED, isJson);
  if (found === undefined) return { name: 'accepted with other properties', look: false };
  return { name: `refused: ${found.code}`, look: false, detail: found.message };
}

/** The error of the best attempt; undefined if one succeeds. */
function withStandIns(
  read: (text: string) => unknown,
  source: string,
  left: number,
  isJson: boolean,
): TilewrightError | undefined {
  const error = refusal(read, source);
  const name =
    error?.code === 'TW_QUERY_UNKNOWN_PROPERTY' ? /"([^"]+)"|property ([\w:.-]+)/.exec(error.message) : null;
  const unknown = name?.[1] ?? name?.[2];
  if (!error || unknown === undefined || left === 0) return error;
  let best = error;
  for (const standIn of STAND_INS) {
    const next = withStandIns(read, replaced(source, unknown, standIn, isJson), left - 1, isJson);
    if (!next) return undefined;
    if (next.code !== 'TW_QUERY_UNKNOWN_PROPERTY') best = next;
  }
  return best;
}

function replaced(source: string, name: string, standIn: string, isJson: boolean): string {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  if (isJson)
    return source.replaceAll(new RegExp(`("property"\\s*:\\s*)"${escaped}"`, 'g'), `$1"${standIn}"`);
  return source.replaceAll(new RegExp(`"${escaped}"|(?<![\\w"'])${escaped}(?![\\w"'])`, 'g'), `"${standIn}"`);
}

function refusal(read: (text: string) => unknown, source: string): TilewrightError | undefined {
  try {
    read(source);
    return undefined;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
}
