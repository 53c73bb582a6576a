/** Parses `--name-pattern`, such as `{platform}_{*}_{tile}_{band}_{time:%Y-%m-%d}.jp2`. */
import { badNamePattern } from '../../errors.js';
import type { DescribeOptions } from '../../ingest-scene-description.js';
import { refuseBandFlags } from '../generic/index.js';

/** Directives of strptime, by letter: the number of digits. */
const DIRECTIVES = { Y: 4, m: 2, d: 2, j: 3, H: 2, M: 2, S: 2 } as const;
export type TimeUnit = keyof typeof DIRECTIVES;

const TEXT_FIELDS = ['band', 'tile', 'platform'] as const;
export type TextField = (typeof TEXT_FIELDS)[number];

const FIELDS = 'fields are {time:%Y-%m-%d}, {band}, {tile}, {platform}, and {*} for text that is ignored';
const UNITS = `directives are ${Object.keys(DIRECTIVES)
  .map((letter) => `%${letter}`)
  .join(' ')}`;

export type PatternPart =
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
  if (!known) throw fail(`{${field}} is not a field; ${FIELDS}`);
  return [{ kind: 'field', field: known }];
}

function parseTimeField(form: string, fail: Fail): PatternPart[] {
  const parts = form.split(/%(.?)/s).flatMap((piece, i): PatternPart[] => {
    if (i % 2 === 0) return parseText(piece, fail);
    if (!Object.hasOwn(DIRECTIVES, piece)) throw fail(`%${piece} is not a directive of {time}; ${UNITS}`);
    const unit = piece as TimeUnit;
    return [{ kind: 'digits', unit, count: DIRECTIVES[unit] }];
  });
  if (!parts.some(({ kind }) => kind === 'digits'))
    throw fail(`{time} needs a form such as {time:%Y-%m-%d}; ${UNITS}`);
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
    throw fail(`it has no field; ${FIELDS}`);
}

/** Each unit, and the larger one without which it means nothing. */
const NEEDED: [TimeUnit, TimeUnit[]][] = [
  ['m', ['Y']],
  ['j', ['Y']],
  ['d', ['m']],
  ['H', ['d', 'j']],
  ['M', ['H']],
  ['S', ['M']],
];

function checkTime(parts: PatternPart[], fail: Fail): void {
  const units = new Set(parts.flatMap((part) => (part.kind === 'digits' ? [part.unit] : [])));
  for (const [unit, larger] of NEEDED)
    if (units.has(unit) && !larger.some((one) => units.has(one)))
      throw fail(`%${unit} of {time} needs ${larger.map((one) => `%${one}`).join(' or ')} as well`);
  if (units.has('j') && units.has('m')) throw fail('{time} has both %j (day of the year) and %m');
}
