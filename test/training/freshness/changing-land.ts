/** Two places with a series of dates over more than a year; the ground of the first one changes. */
import { join } from 'node:path';
import { REGIONS, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { ingest } from '../../support/node.js';

export const COLLECTION = 's';
/** Dates before this time are for the training. */
export const TRAINED_UNTIL = '2023-03-01T00:00:00Z';
export const CHANGE = '2023-05-01T00:00:00Z';
export const FIRST_CHANGED = '2023-05-07T00:00:00.000Z';

const DATES = Array.from({ length: 12 }, (_, i) => ({
  datetime: `${new Date(Date.UTC(2022, 2, 1) + i * 48 * 86_400_000).toISOString().slice(0, 19)}Z`,
  cloudShare: i % 4 === 3 ? 0.3 : 0,
}));

/** Windows within one cell each, of 240 x 240 pixels. */
const PLACES = [
  { name: 'changed', geocode: 'u33ce', origin: { x: 421_330, y: 5_798_810 } },
  { name: 'same', geocode: 'u3638', origin: { x: 460_290, y: 5_798_340 } },
];
export const [CHANGED, SAME] = PLACES.map(({ geocode }) => geocode) as [string, string];

export async function ingestChangingLand(node: TilewrightNode, folder: string): Promise<void> {
  for (const [i, { name, origin }] of PLACES.entries()) {
    const files = await writeSentinelLikeSeries(join(folder, name), {
      ...{ name, dates: DATES, region: REGIONS.fields, seed: 7 * i },
      ...{ origin, size: { width: 240, height: 240 } },
      ...(i === 0 && { change: { kind: 'buildings' as const, from: CHANGE, share: 0.3 } }),
    });
    const href = files.map(({ path }) => path);
    await ingest(node, { href, collection: COLLECTION, precision: 5, scale: 0.0001, maskBand: 5 });
  }
}
