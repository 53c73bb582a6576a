/** Reads facts from a file name by a pattern. */
import type { FileNameFacts } from '../../ingest-scene-description.js';
import { parseTime, stemOf } from '../shared/index.js';
import type { NamePattern, PatternPart, TimeUnit } from './name-pattern.js';

/** Facts of a name that fits the pattern, or the reason why it does not fit. */
export type NameReading =
  | {
      facts: FileNameFacts;
      /** The name without band, ignored text and extension: the same for all files of a scene. */
      sceneName: string;
      reason?: undefined;
    }
  | { reason: string };

/** `name` has no folder. */
export function readName(pattern: NamePattern, name: string): NameReading {
  const text = pattern.hasExtension ? name : stemOf(name);
  const matched = matchParts(pattern.parts, text);
  if (typeof matched === 'string') return { reason: matched };
  const facts: FileNameFacts = { file: name };
  const units: Partial<Record<TimeUnit, string>> = {};
  pattern.parts.forEach((part, i) => {
    if (part.kind === 'field') facts[part.field] = matched[i]!;
    if (part.kind === 'digits') units[part.unit] = matched[i]!;
  });
  if (units.Y !== undefined) {
    const time = timeOfUnits({ ...units, Y: units.Y });
    if (time === undefined) return { reason: `it holds no valid date: ${Object.values(units).join(' ')}` };
    facts.time = time;
  }
  return { facts, sceneName: nameOfScene(pattern, matched) };
}

/** Equal for the files of one scene: they share all facts except the band. */
export function sceneKey({ time, tile, platform }: FileNameFacts): string {
  return JSON.stringify([time, tile, platform]);
}

/**
 * The text of each part, or the reason why the pattern does not fit. A field ends before the first occurrence of the text that follows it;
 * ignored text, and a field directly before digits, is as short as possible. A part is tried at most once at each position, so
 * the number of steps has a limit of parts x length².
 */
function matchParts(parts: PatternPart[], text: string): string[] | string {
  const failed = new Set<number>();
  let furthest = { at: -1, part: 0 };
  const from = (index: number, at: number): number[] | null => {
    if (index === parts.length && at === text.length) return [];
    const state = index * (text.length + 1) + at;
    if (failed.has(state)) return null;
    if (index < parts.length)
      for (const end of endsOf(parts[index]!, parts[index + 1], text, at)) {
        const rest = from(index + 1, end);
        if (rest) return [end, ...rest];
      }
    failed.add(state);
    if (at > furthest.at) furthest = { at, part: index };
    return null;
  };
  const ends = from(0, 0);
  if (ends) return ends.map((end, i) => text.slice(i === 0 ? 0 : ends[i - 1], end));
  const { at, part } = furthest;
  const before = at === 0 ? 'the pattern begins with' : `after "${text.slice(0, at)}" the pattern has`;
  const found = at === text.length ? 'the name ends' : `the name has "${text.slice(at)}"`;
  return `${before} ${partName(parts[part], parts[part + 1])}, ${found}`;
}

/** The positions at which a part that begins at `at` may end. */
function* endsOf(
  part: PatternPart,
  next: PatternPart | undefined,
  text: string,
  at: number,
): Generator<number> {
  if (part.kind === 'text') {
    if (text.startsWith(part.text, at)) yield at + part.text.length;
  } else if (part.kind === 'digits') {
    const digits = text.slice(at, at + part.count);
    if (digits.length === part.count && /^\d+$/.test(digits)) yield at + part.count;
  } else if (next === undefined) {
    if (part.kind === 'ignored' || at < text.length) yield text.length;
  } else if (part.kind === 'field' && next.kind === 'text') {
    const end = text.indexOf(next.text, at + 1);
    if (end > 0) yield end;
  } else {
    for (let end = part.kind === 'field' ? at + 1 : at; end <= text.length; end++) yield end;
  }
}

function partName(part: PatternPart | undefined, next: PatternPart | undefined): string {
  if (!part) return 'its end';
  if (part.kind === 'text') return `"${part.text}"`;
  if (part.kind === 'digits') return `${part.count} digits (%${part.unit})`;
  const name = part.kind === 'field' ? `{${part.field}}` : '{*}';
  return next?.kind === 'text' ? `${name} before "${next.text}"` : name;
}

/** A month, a day or a time in the form of --datetime; undefined if it does not exist. */
function timeOfUnits(units: Partial<Record<TimeUnit, string>> & { Y: string }): string | undefined {
  const { Y, j, H, M = '00', S = '00' } = units;
  const ofYear = j === undefined ? undefined : new Date(Date.UTC(Number(Y), 0, Number(j))).toISOString();
  if (ofYear !== undefined && (j === '000' || !ofYear.startsWith(Y))) return undefined;
  const m = ofYear?.slice(5, 7) ?? units.m;
  const d = ofYear?.slice(8, 10) ?? units.d;
  if (Number.isNaN(parseTime(`${Y}-${m ?? '01'}-${d ?? '01'}T${H ?? '00'}:${M}:${S}Z`))) return undefined;
  const day = [Y, m, d].filter((unit) => unit !== undefined).join('-');
  return H === undefined ? day : `${day}T${H}:${M}:${S}Z`;
}

function nameOfScene({ parts, hasExtension }: NamePattern, matched: string[]): string {
  const kept = parts.map((part, i) =>
    part.kind === 'ignored' || (part.kind === 'field' && part.field === 'band') ? '' : matched[i],
  );
  const name = kept.join('');
  return (hasExtension && parts.at(-1)?.kind === 'text' ? name.slice(0, name.lastIndexOf('.')) : name)
    .replace(/([-_. ])[-_. ]+/g, '$1')
    .replace(/^[-_. ]|[-_. ]$/g, '');
}
