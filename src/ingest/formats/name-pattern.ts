/**
 * Parses `--name-pattern`, such as `{platform}_{*}_{tile}_{band}_{time:%Y-%m-%d}.jp2`, and reads facts from file names by it. Invariant:
 * matching takes polynomial time for any pattern and any name.
 */
import { badNamePattern } from '../errors.js';
import { type DescribeOptions, type FileNameFacts, stemOf } from '../scene.js';
import { parseTime } from './acquisition-time.js';
import { refuseBandFlags } from './raster-bands.js';

/** Directives of strptime, by letter: the number of digits. */
const DIRECTIVES = { Y: 4, m: 2, d: 2, j: 3, H: 2, M: 2, S: 2 } as const;
type TimeUnit = keyof typeof DIRECTIVES;

const TEXT_FIELDS = ['band', 'tile', 'platform'] as const;
type TextField = (typeof TEXT_FIELDS)[number];

const FIELDS_TEXT =
  'fields are {time:%Y-%m-%d}, {band}, {tile}, {platform}, and {*} for text that is ignored';
const UNITS_TEXT = `directives are ${Object.keys(DIRECTIVES)
  .map((letter) => `%${letter}`)
  .join(' ')}`;

type PatternPart =
  | { kind: 'text'; text: string }
  | { kind: 'digits'; unit: TimeUnit; count: number }
  | { kind: 'field'; field: TextField }
  | { kind: 'ignored' };

export interface NamePattern {
  parts: PatternPart[];
  /** True if the pattern includes the extension of the files. If not, the pattern fits names of any extension. */
  hasExtension: boolean;
  hasBand: boolean;
}

/** The file systems accept names of 255 bytes; a longer pattern fits no name. */
const MAX_PATTERN_LENGTH = 255;

/** Throws TW_INGEST_BAD_PATTERN. */
export function parseNamePattern(pattern: string): NamePattern {
  const fail = (reason: string) => badNamePattern(pattern.slice(0, MAX_PATTERN_LENGTH), reason);
  if (pattern.length > MAX_PATTERN_LENGTH) throw fail(`it is longer than ${MAX_PATTERN_LENGTH} characters`);
  // The odd pieces are the texts between braces.
  const parts = pattern
    .split(/\{([^{}]*)\}/)
    .flatMap((piece, i) => (i % 2 === 0 ? parseText(piece, fail) : parseField(piece, fail)));
  checkFields(parts, fail);
  checkTime(parts, fail);
  return {
    parts,
    hasExtension: /\.(?:[a-z][a-z0-9]{0,4}|\{\*?\})$/i.test(pattern),
    hasBand: parts.some((part) => part.kind === 'field' && part.field === 'band'),
  };
}

/** Throws TW_INGEST_BAD_PATTERN, and TW_INGEST_BAD_OPTION for options that contradict the pattern. */
export function checkNamePattern({
  namePattern,
  ...bandFlags
}: Pick<DescribeOptions, 'namePattern' | 'bands' | 'maskBand'>): void {
  if (namePattern !== undefined && parseNamePattern(namePattern).hasBand)
    refuseBandFlags(bandFlags, '{band} of --name-pattern names the bands');
}

type Fail = (reason: string) => Error;

function parseText(text: string, fail: Fail): PatternPart[] {
  if (/[{}]/.test(text)) throw fail('a brace has no counterpart');
  if (text.includes('/')) throw fail('it must describe the name of a file, without folders');
  return text === '' ? [] : [{ kind: 'text', text }];
}

function parseField(field: string, fail: Fail): PatternPart[] {
  if (field === '' || field === '*') return [{ kind: 'ignored' }];
  if (field === 'time' || field.startsWith('time:')) return parseTimeField(field.slice(5), fail);
  const known = TEXT_FIELDS.find((name) => name === field);
  if (!known) throw fail(`{${field}} is not a field; ${FIELDS_TEXT}`);
  return [{ kind: 'field', field: known }];
}

function parseTimeField(form: string, fail: Fail): PatternPart[] {
  const parts = form.split(/%(.?)/s).flatMap((piece, i): PatternPart[] => {
    if (i % 2 === 0) return parseText(piece, fail);
    if (!Object.hasOwn(DIRECTIVES, piece))
      throw fail(`%${piece} is not a directive of {time}; ${UNITS_TEXT}`);
    const unit = piece as TimeUnit;
    return [{ kind: 'digits', unit, count: DIRECTIVES[unit] }];
  });
  if (!parts.some(({ kind }) => kind === 'digits'))
    throw fail(`{time} needs a form such as {time:%Y-%m-%d}; ${UNITS_TEXT}`);
  return parts;
}

function checkFields(parts: PatternPart[], fail: Fail): void {
  const seen = new Set<string>();
  for (const part of parts) {
    const name = part.kind === 'field' ? `{${part.field}}` : part.kind === 'digits' ? `%${part.unit}` : '';
    if (name !== '' && seen.has(name)) throw fail(`${name} occurs twice`);
    seen.add(name);
  }
  const isFree = (part: PatternPart | undefined) => part?.kind === 'field' || part?.kind === 'ignored';
  if (parts.some((part, i) => isFree(part) && isFree(parts[i + 1])))
    throw fail('two fields follow each other without text between them, so their border is unknown');
  if (!parts.some(({ kind }) => kind === 'field' || kind === 'digits'))
    throw fail(`it has no field; ${FIELDS_TEXT}`);
}

/** Each unit, and the larger one without which it means nothing. */
const REQUIRED_UNITS: [TimeUnit, TimeUnit[]][] = [
  ['m', ['Y']],
  ['j', ['Y']],
  ['d', ['m']],
  ['H', ['d', 'j']],
  ['M', ['H']],
  ['S', ['M']],
];

function checkTime(parts: PatternPart[], fail: Fail): void {
  const units = new Set(parts.flatMap((part) => (part.kind === 'digits' ? [part.unit] : [])));
  for (const [unit, larger] of REQUIRED_UNITS)
    if (units.has(unit) && !larger.some((one) => units.has(one)))
      throw fail(`%${unit} of {time} needs ${larger.map((one) => `%${one}`).join(' or ')} as well`);
  if (units.has('j') && units.has('m')) throw fail('{time} has both %j (day of the year) and %m');
}

/** Facts of a name that fits the pattern, or the reason why it does not fit. */
type NameReading =
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
