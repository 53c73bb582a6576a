/**
 * The temporal functions of CQL2 (OGC 21-065r2, section 7.8): the relations of Allen ("Maintaining knowledge about temporal
 * intervals", 1983) over closed periods in milliseconds. An instant is a period that ends where it starts.
 */

export type Period = readonly [start: number, end: number];

type Relation = (aStart: number, aEnd: number, bStart: number, bEnd: number) => boolean;

export const temporalRelations = {
  t_after: (a, _aEnd, _b, bEnd) => a > bEnd,
  t_before: (_a, aEnd, b) => aEnd < b,
  t_contains: (a, aEnd, b, bEnd) => a < b && aEnd > bEnd,
  t_disjoint: (a, aEnd, b, bEnd) => a > bEnd || aEnd < b,
  t_during: (a, aEnd, b, bEnd) => a > b && aEnd < bEnd,
  t_equals: (a, aEnd, b, bEnd) => a === b && aEnd === bEnd,
  t_finishedBy: (a, aEnd, b, bEnd) => a < b && aEnd === bEnd,
  t_finishes: (a, aEnd, b, bEnd) => a > b && aEnd === bEnd,
  t_intersects: (a, aEnd, b, bEnd) => a <= bEnd && aEnd >= b,
  t_meets: (_a, aEnd, b) => aEnd === b,
  t_metBy: (a, _aEnd, _b, bEnd) => a === bEnd,
  t_overlappedBy: (a, aEnd, b, bEnd) => a > b && a < bEnd && aEnd > bEnd,
  t_overlaps: (a, aEnd, b, bEnd) => a < b && aEnd > b && aEnd < bEnd,
  t_startedBy: (a, aEnd, b, bEnd) => a === b && aEnd > bEnd,
  t_starts: (a, aEnd, b, bEnd) => a === b && aEnd < bEnd,
} satisfies Record<string, Relation>;

export type TemporalOp = keyof typeof temporalRelations;

/** The equivalent function with swapped arguments. */
export const temporalConverse: Record<TemporalOp, TemporalOp> = {
  t_after: 't_before',
  t_before: 't_after',
  t_contains: 't_during',
  t_disjoint: 't_disjoint',
  t_during: 't_contains',
  t_equals: 't_equals',
  t_finishedBy: 't_finishes',
  t_finishes: 't_finishedBy',
  t_intersects: 't_intersects',
  t_meets: 't_metBy',
  t_metBy: 't_meets',
  t_overlappedBy: 't_overlaps',
  t_overlaps: 't_overlappedBy',
  t_startedBy: 't_starts',
  t_starts: 't_startedBy',
};

/** A period that all periods with the relation `op` to the given period overlap. */
export function boundingPeriod(op: TemporalOp, [start, end]: Period): Period {
  if (op === 't_after') return [end, Infinity];
  if (op === 't_before') return [-Infinity, start];
  return op === 't_disjoint' ? [-Infinity, Infinity] : [start, end];
}
