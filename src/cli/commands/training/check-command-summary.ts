/** The results of a check as lines. */
import type { CheckResults } from '../../../training/index.js';
import { plural, reasonKey } from '../../../utils/plural.js';
import { formatMse, table } from '../../output/index.js';

const MAX_LISTED = 20;

/** Lists the places that have drifted, the reasons of those that are unknown, and the numbers of places. */
export function checkSummary({ fresh, drifted, unknown, without, places }: CheckResults): string[] {
  const rows = places.flatMap(({ status, geocode, firstDrifted = '', error, promised, ratio, dates }) =>
    status === 'drifted'
      ? [
          [
            geocode,
            firstDrifted.slice(0, 10),
            formatMse(error!),
            formatMse(promised!),
            ratio!.toFixed(1),
            `${dates}`,
          ],
        ]
      : [],
  );
  const listed = rows.slice(0, MAX_LISTED);
  // Reasons that differ only in their numbers are one reason.
  const reasons = new Map<string, { reason: string; geocode: string; count: number }>();
  for (const { reason, geocode } of places) {
    if (reason === undefined) continue;
    const known = reasons.get(reasonKey(reason));
    if (known) known.count++;
    else reasons.set(reasonKey(reason), { reason, geocode, count: 1 });
  }
  return [
    ...(listed.length > 0
      ? table([['drifted', 'since', 'MSE now', 'MSE promised', 'ratio', 'dates'], ...listed])
      : []),
    ...(rows.length > MAX_LISTED ? [`and ${plural(rows.length - MAX_LISTED, 'other place')}`] : []),
    ...[...reasons.values()].map(
      ({ reason, geocode, count }) =>
        `unknown: ${count === 1 ? geocode : `${plural(count, 'place')} (such as ${geocode})`}: ${reason}`,
    ),
    `${plural(fresh + drifted + unknown, 'place')}: ${fresh} fresh, ${drifted} drifted, ${unknown} unknown${without > 0 ? `; ${without} without a model` : ''}`,
  ];
}
