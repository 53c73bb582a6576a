/** Messages and progress go to stderr; results go to stdout, as text, as a map of letters, or as one JSON document. */
import type { JobError, PartialDocument, Progress } from '../client/index.js';
import { SLOTS } from '../dht/index.js';
import { type GridName, gridByName } from '../grid/index.js';
import { formatDuration } from '../html/index.js';
import type { ImageScores, TrainResults } from '../training/index.js';
import { plural, visibleText } from '../utils/text.js';
import type { FilterOptions } from './options.js';

export function printJson(document: unknown): void {
  // JSON escapes all other control characters, and terminals obey these too.
  const text = JSON.stringify(document, null, 2).replace(/[\x7f-\x9f]/g, unicodeEscape);
  process.stdout.write(`${text}\n`);
}

const unicodeEscape = (character: string) => `\\u00${character.charCodeAt(0).toString(16)}`;

export function print(line = ''): void {
  process.stdout.write(`${visibleText(line)}\n`);
}

/** Formats a share from 0 to 1, such as "61.2 %". */
export const formatPercent = (share: number) => `${(100 * share).toFixed(1)} %`;

export function logToStderr(line: string): void {
  process.stderr.write(`${visibleText(line)}\n`);
}

/** Warns about an incomplete answer. */
export function warnPartial({ partial, unansweredSlots = [] }: PartialDocument): void {
  if (!partial) return;
  const [missing, all] = [unansweredSlots.length, SLOTS].map((n) => n.toLocaleString('en'));
  logToStderr(`warning: ${missing} of ${all} slots have no node that answers; the result is incomplete`);
}

/** Merges the partial members of several answers. */
export function mergePartial(...answers: PartialDocument[]): PartialDocument {
  const unanswered = new Set(answers.flatMap(({ unansweredSlots = [] }) => unansweredSlots));
  if (!answers.some(({ partial }) => partial)) return {};
  return { partial: true, unansweredSlots: [...unanswered].sort((a, b) => a - b) };
}

/** Matches messages of jobs whose filter matches no tile. */
const NO_MATCH = /no tile (fits|matches) the filter$/;

/** Possible reasons why a filter matches no tile. Empty if there is no known reason. */
export function noMatchHint({ minCloud, maxCloud, geocode, recurse }: FilterOptions): string {
  return [
    (minCloud ?? maxCloud) !== undefined && 'Tiles with unknown cloud cover match no cloud limit.',
    geocode !== undefined && !recurse && '--recurse includes the cells inside a geocode.',
  ]
    .filter((reason) => reason !== false)
    .join(' ');
}

/** Prints the error of a job, with a hint if its filter matched no tile, and sets the exit code 1. */
export function reportJobError({ message, code }: JobError, flags: FilterOptions): void {
  logToStderr(`error: ${message} [${code}]`);
  const hint = NO_MATCH.test(message) && noMatchHint(flags);
  if (hint) logToStderr(hint);
  process.exitCode = 1;
}

/** Pads columns to their widest cell, and aligns numbers to the right. */
export function table(rows: (string | number)[][]): string[] {
  const widths = rows[0]?.map((_, c) => Math.max(...rows.map((row) => String(row[c]).length))) ?? [];
  const cell = (value: string | number, width: number) =>
    typeof value === 'number' ? String(value).padStart(width) : value.padEnd(width);
  return rows.map((row) =>
    row
      .map((value, c) => cell(value, widths[c]))
      .join('  ')
      .trimEnd(),
  );
}

export function printTable(rows: (string | number)[][]): void {
  for (const line of table(rows)) print(line);
}

/** Interval of progress lines if stderr is not a terminal. */
const NON_TTY_INTERVAL_MS = 15_000;

interface ProgressLine {
  update(progress: Progress): void;
  end(): void;
}

/** Shows progress while `work` runs: on a terminal in one line that is rewritten, elsewhere with a line at intervals. */
export async function withProgressLine<T>(
  unit: string,
  work: (line: ProgressLine) => Promise<T>,
): Promise<T> {
  const line = progressLine(unit);
  try {
    return await work(line);
  } finally {
    line.end();
  }
}

/** Percent of the work after which a remaining time is shown. */
const MIN_PERCENT_FOR_ESTIMATE = 10;
/** Units that can be in progress at a time: so much may the percentage differ from the counts. */
const MAX_UNITS_IN_PROGRESS = 8;

export function progressLine(unit: string): ProgressLine {
  const { stderr } = process;
  const started = performance.now();
  let last = stderr.isTTY ? 0 : started;
  let drawn = false;
  return {
    update({ message, tiles, progress }) {
      const now = performance.now();
      if (tiles.total === 0 || now - last < (stderr.isTTY ? 100 : NON_TTY_INTERVAL_MS)) return;
      last = now;
      const seconds = (now - started) / 1000;
      const estimate =
        progress >= MIN_PERCENT_FOR_ESTIMATE
          ? `, ${formatDuration((seconds * (100 - progress)) / progress)} left`
          : '';
      const counts = `${countsText(tiles, progress, unit, seconds)}${Math.floor(progress)} %${estimate}`;
      // A terminal cuts off the end.
      const text = visibleText(message ? `${counts}: ${message}` : counts);
      if (stderr.isTTY) stderr.write(`\r\x1b[2K${text.slice(0, terminalWidth(stderr) - 1)}`);
      else logToStderr(text);
      drawn = true;
    },
    end() {
      if (drawn && stderr.isTTY) stderr.write('\r\x1b[2K');
    },
  };
}

/** Counts and their rate; empty if they contradict the percentage, because more units are to come or a job has several passes. */
function countsText(tiles: Progress['tiles'], progress: number, unit: string, seconds: number): string {
  const worked = tiles.done + tiles.failed;
  const work = tiles.total - tiles.skipped;
  const tolerance = Math.max(MAX_UNITS_IN_PROGRESS, 0.02 * work);
  if (Math.abs(worked - (progress / 100) * work) > tolerance) return '';
  // Skipped tiles take almost no time.
  const rate = worked > 0 ? `, ${(worked / seconds).toFixed(1)}/s` : '';
  return `${worked + tiles.skipped} of ${tiles.total} ${unit}${rate}, `;
}

/** Columns of a terminal. Some terminals in containers and CI report 0. */
const terminalWidth = ({ columns }: { columns?: number }) => columns || 80;

/** Formats a mean squared error; the values cover many powers of ten. */
export const formatMse = (value: number) => value.toExponential(2);

/** "1.5 GB"; units are powers of ten. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  let [value, unit] = [bytes / 1000, 0];
  // Values of 999.5 and more would be rounded to 1000.
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000;
  return `${value.toFixed(value < 9.95 ? 1 : 0)} ${units[unit]}`;
}

/** Prints the warnings of a job, with the names of flags. */
export function printWarnings({ warnings = [] }: { warnings?: string[] }): void {
  for (const text of warnings) logToStderr(`warning: ${text.replace(/ with (datetime)$/, ' with --$1')}`);
}

/** Prints the warnings of a job about tiles, those of one kind in one line. */
export function printTileWarnings({ warnings = [] }: { warnings?: string[] }): void {
  const parts = warnings.map((text) => /^(\S+): (.*)$/s.exec(text) ?? [text, '', text]);
  const general = parts.filter(([, id]) => id === '').map(([text]) => text);
  const ofTiles = parts.filter(([, id]) => id !== '').map(([, id, text]) => ({ id: id!, warnings: [text!] }));
  for (const text of [...warningLines(ofTiles), ...general]) logToStderr(`warning: ${text}`);
}

/**
 * Groups the warnings of scenes, one line for each warning: "a and 3 others: no MTL file". Warnings that differ only in numbers and bands
 * are one warning, and their metres and percentages become ranges: "off by 10 to 26 m".
 */
export function warningLines(scenes: { id: string; warnings: string[] }[]): string[] {
  const groups = new Map<string, { ids: Set<string>; texts: Set<string> }>();
  for (const { id, warnings } of scenes)
    for (const text of warnings) {
      const kind = text.replace(/\bB?\d+A?\b/g, '0');
      const known = groups.get(kind) ?? { ids: new Set(), texts: new Set() };
      known.ids.add(id);
      known.texts.add(text);
      groups.set(kind, known);
    }
  return Array.from(groups.values(), ({ ids, texts }) => {
    const [first] = ids;
    const others = ids.size > 1 ? ` and ${plural(ids.size - 1, 'other')}` : '';
    return `${first}${others}: ${commonText([...texts])}`;
  });
}

const AMOUNT_PATTERN = /\b\d+(?:\.\d+)?(?= (?:m\b|% of))/g;

/** One text for several that differ only in numbers and bands. */
function commonText([first, ...more]: string[]): string {
  const amounts = [first!, ...more].map((text) =>
    Array.from(text.matchAll(AMOUNT_PATTERN), ([one]) => Number(one)),
  );
  let index = 0;
  const ranges = first!.replace(AMOUNT_PATTERN, () => {
    const values = amounts.map((one) => one[index]!);
    index++;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return least === most ? `${least}` : `${least} to ${most}`;
  });
  const isAll = new Set([first!, ...more].map((text) => text.replace(AMOUNT_PATTERN, ''))).size === 1;
  return isAll || more.length === 0 ? ranges : `${ranges} (and ${more.length} more like it)`;
}

/** The known measures of predicted images, by title. Measures of older versions are marked with their range of values. */
export function imageMeasures({ psnr, ssim, msSsim, images }: Partial<ImageScores>): Record<string, string> {
  const older = (range: string) => (images ? '' : range);
  return {
    ...(msSsim && {
      'MS-SSIM': `${msSsim.value.toFixed(3)} (${plural(msSsim.scales, 'scale')}${older(', range 2.0')})`,
    }),
    ...(psnr !== undefined && { 'PSNR dB': psnr.toFixed(1) + older(' (range 1.0)') }),
    ...(ssim !== undefined && { SSIM: ssim.toFixed(3) + older(' (range 1.0)') }),
  };
}

/** Maximum size of a readable map. */
const MAX_MAP_COLUMNS = 100;
const MAX_MAP_ROWS = 60;

/** Clusters are A to Z, then a to z, then *. */
export function clusterLetter(cluster: number): string {
  if (cluster < 26) return String.fromCharCode(65 + cluster);
  return cluster < 52 ? String.fromCharCode(97 + cluster - 26) : '*';
}

/** Returns undefined if the map would be too large. Draws only cells of the highest precision. */
export function asciiMap(
  gridName: GridName,
  cells: { geocode: string; mark: string }[],
): string[] | undefined {
  const grid = gridByName(gridName);
  const precision = most(cells.map(({ geocode }) => geocode.length));
  const { width, height } = grid.cellSize(precision);
  const placed = cells
    .filter(({ geocode }) => geocode.length === precision)
    .map(({ geocode, mark }) => {
      const { west, north } = grid.bounds(geocode);
      return { column: Math.round(west / width), row: -Math.round(north / height), mark };
    });
  const [left, top] = [least(placed.map(({ column }) => column)), least(placed.map(({ row }) => row))];
  const columns = 1 + most(placed.map(({ column }) => column)) - left;
  const lines = 1 + most(placed.map(({ row }) => row)) - top;
  if (columns > MAX_MAP_COLUMNS || lines > MAX_MAP_ROWS) return undefined;
  const rows = Array.from({ length: lines }, () => new Array<string>(columns).fill('.'));
  for (const { column, row, mark } of placed) rows[row - top][column - left] = mark;
  return rows.map((row) => row.join(' '));
}

const least = (values: number[]) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b), -Infinity);

const MAX_LISTED_NAMES = 20;

/** The names separated by commas, or the 20 names nearest to `wanted` and the number of others. */
export function listNearest(wanted: string, names: string[]): string {
  if (names.length <= MAX_LISTED_NAMES) return names.join(', ');
  const distances = new Map(names.map((name) => [name, editDistance(wanted, name)]));
  const nearest = names.toSorted((a, b) => distances.get(a)! - distances.get(b)!).slice(0, MAX_LISTED_NAMES);
  return `${nearest.join(', ')} and ${names.length - MAX_LISTED_NAMES} more`;
}

/** Characters to insert, delete or replace between two texts (Levenshtein). */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...a].entries()) {
    const line = [row + 1];
    for (let column = 1; column < above.length; column++) {
      const replaced = above[column - 1]! + (letter === b[column - 1] ? 0 : 1);
      line.push(Math.min(replaced, above[column]! + 1, line[column - 1]! + 1));
    }
    above = line;
  }
  return above.at(-1)!;
}

/** How many places each candidate serves. */
export function servedSummary(models: readonly { serves?: string }[]): string[] {
  const counts = new Map<string, number>();
  for (const { serves } of models) if (serves) counts.set(serves, (counts.get(serves) ?? 0) + 1);
  if (counts.size === 0) return [];
  const named = Array.from(counts, ([name, count]) => `${SERVED_NAMES[name] ?? name} (${count})`);
  return [`chosen on dates or ground that was left out: ${named.join(', ')}`];
}

export const SERVED_NAMES: Record<string, string> = {
  mean: 'the mean of the training',
  history: 'the mean of the other dates',
  ridge: 'ridge regression',
  regional: 'the network of the region',
  adapted: 'the network of the region, adapted',
  own: 'a network of the place',
};

const QUESTION_NAMES: Record<string, string> = {
  otherGround: 'other ground',
  otherGroundKnown: 'other ground, history known',
  otherDates: 'other dates',
  otherGroundAndDates: 'both other',
  otherGroundAndDatesKnown: 'both other, history known',
};

/** The titles and a row for each question: the errors of the model, with their interval, and of the simple baselines. Empty without one. */
export function questionRows(questions: NonNullable<TrainResults['questions']>): string[][] {
  const baselines = (['mean', 'history', 'nearest', 'linear'] as const).filter((name) =>
    questions.every(({ errors }) => errors[name] !== undefined),
  );
  const compared = (['linear', 'history'] as const).filter((name) => baselines.includes(name));
  const rows = questions.map(({ question, errors, interval, single = [], better, places }) => [
    QUESTION_NAMES[question]!,
    formatMse(errors.model),
    interval
      ? `${formatMse(interval[0])} to ${formatMse(interval[1])}`
      : `too few: ${single.map(({ error }) => formatMse(error)).join(', ')}`,
    ...baselines.map((name) => formatMse(errors[name]!)),
    `${compared.map((name) => better[name]).join(', ')} of ${places}`,
  ]);
  const titles = ['question', 'MSE', '95 %', ...baselines, `better than ${compared.join(', ')}`];
  return rows.length > 0 ? [titles, ...rows] : [];
}

/** Says how many of the places count in "all places" with errors of training dates, because they held out none. */
export function heldOutSummary({ models, pooled }: Pick<TrainResults, 'models' | 'pooled'>): string[] {
  const all = models.reduce((sum, { distributed }) => sum + (distributed?.places.length ?? 1), 0);
  const dated = models.reduce((sum, { datedPlaces }) => sum + datedPlaces, 0);
  if (!pooled || dated === all) return [];
  return [
    dated === 0
      ? 'no place held out dates: the errors are those on other ground and dates of the training'
      : `${dated} of ${plural(all, 'place')} held out dates; in "all places", the others have their errors on other ground and dates of the training`,
  ];
}
