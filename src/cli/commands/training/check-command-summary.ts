/** The results of a check as lines. */
import type { CheckResults } from '../../../training/index.js';
import { plural } from '../../../utils/plural.js';
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
  const reasons = new Map<string, string[]>();
  for (const { reason, geocode } of places)
    if (reason !== undefined) reasons.set(reason, [...(reasons.get(reason) ?? []), geocode]);
  return [
    ...(listed.length > 0
      ? table([['drifted', 'since', 'MSE now', 'MSE promised', 'ratio', 'dates'], ...listed])
      : []),
    ...(rows.length > MAX_LISTED ? [`and ${plural(rows.length - MAX_LISTED, 'other place')}`] : []),
    ...[...reasons].map(
      ([reason, cells]) =>
        `unknown: ${cells.length === 1 ? cells[0] : `${plural(cells.length, 'place')} (such as ${cells[0]})`}: ${reason}`,
    ),
    `${plural(fresh + drifted + unknown, 'place')}: ${fresh} fresh, ${drifted} drifted, ${unknown} unknown${without > 0 ? `; ${without} without a model` : ''}`,
  ];
}
