/** Counts of the tiles of a run, and the reasons why tiles are left out or fail. */
import { type ErrorMaker, messageOf, TilewrightError } from '../errors.js';
import { COUNT, listOf, objectOf, TEXT } from '../utils/json-schema.js';
import type { JobContext } from './job-process.js';

/** Tiles of a run, or of all runs of a job. Plain JSON. */
export interface TileCounts {
  /** Tiles that were made, or read by an analysis. */
  tiles: number;
  /** Tiles that were left out, by reason. */
  skipped: Record<string, number>;
  /** The first tiles that failed. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Bytes of files that were fetched from the object store; absent if there were none. */
  bytesFetched?: number;
}

/** JSON Schema of the members that every `TileCounts` has. */
export const TILE_COUNTS_SCHEMA = {
  tiles: COUNT,
  skipped: { type: 'object', additionalProperties: COUNT },
  failed: listOf(objectOf({ tile: TEXT, code: TEXT, message: TEXT })),
  failures: COUNT,
};

export const MAX_LISTED_FAILURES = 1000;
const MAX_LISTED_REASONS = 3;

export function emptyCounts(): TileCounts {
  return { tiles: 0, skipped: {}, failed: [], failures: 0 };
}

export function addSkipped({ skipped }: Pick<TileCounts, 'skipped'>, reason: string, count = 1): void {
  skipped[reason] = (skipped[reason] ?? 0) + count;
}

export function addFetched(counts: Pick<TileCounts, 'bytesFetched'>, bytes: number): void {
  if (bytes > 0) counts.bytesFetched = (counts.bytesFetched ?? 0) + bytes;
}

/** Counts and logs a tile that failed. `unknown` makes an error of one that has no code. */
export function addFailure(
  counts: TileCounts,
  job: JobContext,
  tile: string,
  error: unknown,
  unknown: ErrorMaker<[tile: string, detail: string]>,
): void {
  const { code, message } =
    error instanceof TilewrightError ? error : unknown.because(error, tile, messageOf(error));
  if (counts.failures < MAX_LISTED_FAILURES) {
    job.log('error', `${tile}: ${message} [${code}]`);
    counts.failed.push({ tile, code, message });
  }
  counts.failures++;
}

/** Adds up numbers of tiles by reason. */
export function mergeSkipped(parts: readonly Pick<TileCounts, 'skipped'>[]): Record<string, number> {
  const total = emptyCounts();
  for (const { skipped } of parts)
    for (const [reason, count] of Object.entries(skipped)) addSkipped(total, reason, count);
  return total.skipped;
}

export function mergeCounts(parts: readonly TileCounts[]): TileCounts {
  const total: TileCounts = {
    tiles: sumOf(parts, ({ tiles }) => tiles),
    skipped: mergeSkipped(parts),
    failed: parts.flatMap(({ failed }) => failed).slice(0, MAX_LISTED_FAILURES),
    failures: sumOf(parts, ({ failures }) => failures),
  };
  addFetched(
    total,
    sumOf(parts, ({ bytesFetched = 0 }) => bytesFetched),
  );
  return total;
}

export function sumOf<T>(parts: readonly T[], of: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + of(part), 0);
}

/** The messages of the first failures, for an error that names reasons. */
export function firstReasons({ failed }: Pick<TileCounts, 'failed'>): string[] {
  return failed.slice(0, MAX_LISTED_REASONS).map(({ message }) => message);
}
