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

/** Forms of times in names: those with a time of day first, then days before months. The year is plausible in all of them. */
const TIME_FORMS = [
  ...['%Y-%m-%dT%H:%M:%S', '%Y-%m-%dT%H-%M-%S', '%Y-%m-%dT%H%M%S', '%Y%m%dT%H%M%S', '%Y%m%d_%H%M%S'],
  ...['%Y-%m-%d', '%Y_%m_%d', '%Y.%m.%d', '%Y%m%d', '%Y%j', '%Y-%j', '%Y-%m', '%Y_%m', '%Y%m', '%Y'],
];
const MIN_YEAR = 1970;

/** Words of file names that are a band: common names, numbers of bands, and indices. */
const BAND_WORD =
  /^(b\d{1,2}a?|band\d{1,2}|ndvi|evi2?|savi|ndwi|mndwi|ndmi|nbr2?|ndsi|lai|fpar|lst|coastal|blue|green|red|rededge\d{0,3}|nir\d{0,2}|swir\d{0,2}|pan|cirrus)$/i;
const PLATFORM_WORD = /^(terra|aqua|landsat\d|sentinel[123][a-d]|suominpp|noaa\d\d)$/i;

/** A name around its time: words and the separators between them, in turn. */
interface NameWords {
  /** The text of the time. */
  time: string;
  words: string[];
  /** Index of the word that contains the time. */
  timeAt: number;
  /** The text of this word before and after the time. */
  around: [before: string, after: string];
}

/**
 * Proposes a pattern for files of one series: it fits all their names, which hold one date each, and no two files are the same band of the
 * same scene. Undefined if the names have no such pattern. `hasBands`: the bands are named otherwise.
 */
export function proposeNamePattern(names: readonly string[], hasBands = false): string | undefined {
  const extension = /\.[a-z0-9]{1,5}$/i.exec(names[0] ?? '')?.[0] ?? '';
  if (names.length === 0 || !names.every((name) => name.endsWith(extension))) return undefined;
  const stems = names.map((name) => name.slice(0, name.length - extension.length));
  for (const form of TIME_FORMS) {
    const split = stems.map((stem) => splitAtTime(stem, form));
    const found = split.filter((words) => words !== undefined);
    if (found.length < stems.length) {
      // Names in which this form is not the only one have several times, or different forms.
      if (found.length > 0) return undefined;
      continue;
    }
    // Six digits behind a day are a time of day only if they change.
    if (form.includes('_%H') && new Set(found.map(({ time }) => time.slice(9))).size === 1) continue;
    const pattern = patternOfWords(found, form, hasBands);
    return pattern !== undefined && fitsAll(pattern + extension, names) ? pattern + extension : undefined;
  }
  return undefined;
}

/** Undefined unless a name holds exactly one time of this form. */
function splitAtTime(stem: string, form: string): NameWords | undefined {
  const digits = form
    .replace(/[.]/g, '\\.')
    .replace(/%(.)/g, (_, unit: TimeUnit) => `\\d{${DIRECTIVES[unit]}}`);
  const matches = [...stem.matchAll(new RegExp(`(?<!\\d)${digits}(?!\\d)`, 'g'))].filter(([text]) => {
    const reading = readName(parseNamePattern(`{time:${form}}.x`), `${text}.x`);
    return reading.reason === undefined && Number(text.slice(0, 4)) >= MIN_YEAR && isPast(text.slice(0, 4));
  });
  const [match] = matches;
  if (!match || matches.length > 1) return undefined;
  const end = match.index + match[0].length;
  const before = stem.slice(0, match.index).split(/([-_. ]+)/);
  const after = stem.slice(end).split(/([-_. ]+)/);
  const around: NameWords['around'] = [before.pop()!, after.shift()!];
  return { time: match[0], words: [...before, '', ...after], timeAt: before.length, around };
}

const isPast = (year: string) => Number(year) <= new Date().getUTCFullYear() + 1;

/** Words that are equal in all names are text; of those that differ, one may be the band and one the tile. */
function patternOfWords(all: NameWords[], form: string, hasBands: boolean): string | undefined {
  const [first] = all;
  if (!first) return undefined;
  const shape = ({ words, timeAt, around }: NameWords) => JSON.stringify([words.length, timeAt, around]);
  if (all.some((name) => shape(name) !== shape(first))) return undefined;
  const fields = new Set<string>();
  const parts = first.words.map((word, i) => {
    if (i === first.timeAt) return `${first.around[0]}{time:${form}}${first.around[1]}`;
    const isSeparator = i % 2 === 1;
    const isAll = (test: (text: string) => boolean) => all.every(({ words }) => test(words[i]!));
    const isSame = isAll((text) => text === word);
    if (isSeparator) return isSame ? word : undefined;
    const field =
      !hasBands && isAll((text) => BAND_WORD.test(text))
        ? 'band'
        : isAll((text) => PLATFORM_WORD.test(text))
          ? 'platform'
          : isSame
            ? undefined
            : 'tile';
    if (field === undefined || (isSame && fields.has(field))) return word;
    if (fields.has(field)) return undefined;
    fields.add(field);
    return `{${field}}`;
  });
  return parts.includes(undefined) ? undefined : parts.join('');
}

function fitsAll(text: string, names: readonly string[]): boolean {
  let pattern: NamePattern;
  try {
    pattern = parseNamePattern(text);
  } catch (error) {
    if (badNamePattern.is(error)) return false;
    throw error;
  }
  const readings = names.map((name) => readName(pattern, name));
  const files = readings.flatMap((reading) =>
    reading.reason === undefined && reading.facts.time !== undefined && reading.sceneName !== ''
      ? [`${sceneKey(reading.facts)} ${reading.facts.band}`]
      : [],
  );
  return new Set(files).size === names.length;
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
