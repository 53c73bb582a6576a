/** Random filters over the tiles of tiles.ts. */
import fc from 'fast-check';
import { type TemporalOp, temporalRelations } from '../../src/query/filter/temporal.js';
import { type SpatialOp, spatialRelations } from '../../src/query/geometry/spatial.js';
import { all, type Filter } from '../../src/query/index.js';
import { shapes } from './spatial-oracle.js';
import { cells, day, percent, tileSources, times, wavelengths } from './tiles.js';

const comparisons = fc.constantFrom('=', '<>', '<', '<=', '>', '>=');
const timeNames = fc.constantFrom('datetime', 'start_datetime', 'end_datetime', 'created');
const numberNames = fc.constantFrom('eo:cloud_cover', 'pixel_coverage');
const wavelengthNames = fc.constantFrom('hsi:wavelength_min', 'hsi:wavelength_max');

const texts = {
  id: cells.map(({ geocode }) => `a_s1_g${geocode}`),
  collection: fc.constantFrom('a', 'b', 'a_b', 'unknown'),
  platform: fc.constantFrom('sentinel-2a', 'landsat-8', 'unknown'),
  source: fc.constantFrom(...tileSources),
  scene: fc.constantFrom('s1', 's2', 's9', 'unknown'),
  geocode: fc.oneof(
    cells.map(({ geocode }) => geocode),
    cells.map(({ geocode }) => geocode.slice(0, 2)),
    fc.constantFrom('not', ''),
  ),
  'grid:code': cells.map(({ grid, geocode }) => `${grid.toUpperCase()}-${geocode}`),
};

/** A text property with some value of it. */
const textValue = fc
  .constantFrom(...(Object.keys(texts) as (keyof typeof texts)[]))
  .chain((property) =>
    fc.tuple(fc.constant(property), texts[property], fc.array(texts[property], { maxLength: 4 })),
  );

const patterns = fc
  .tuple(textValue, fc.nat(), fc.constantFrom('%', '_', '%_', '%%', ''))
  .chain(([[property, text], cut, wild]) => {
    const at = cut % (text.length + 1);
    return fc
      .constantFrom(
        `${text.slice(0, at)}%`,
        `%${text.slice(at)}`,
        `${text.slice(0, at)}${wild}${text.slice(at + 1)}`,
        `%${text.slice(at, at + 2)}%`,
        text,
      )
      .map((pattern): Filter => ({ op: 'like', property, pattern }));
  });

const periods = fc.tuple(times, fc.integer({ min: 0, max: 9 })).map(([start, days]): [number, number] => {
  return [start, start + days * day];
});
/** An instant, or a whole day: what a time is compared with. */
const instants = fc
  .tuple(times, fc.constantFrom(0, day - 1))
  .map(([start, length]) => [start, start + length]);
const openPeriods = fc.oneof(
  periods,
  periods.map(([start]): [number, null] => [start, null]),
  periods.map(([, end]): [null, number] => [null, end]),
  fc.constant<[null, null]>([null, null]),
);

const conditions: fc.Arbitrary<Filter> = fc.oneof(
  fc
    .record({ op: comparisons, text: textValue })
    .map(({ op, text: [property, value] }) => ({ op, property, value }) as Filter),
  fc.record({ op: comparisons, property: numberNames, value: percent }) as fc.Arbitrary<Filter>,
  fc.record({ op: comparisons, property: timeNames, period: instants }) as fc.Arbitrary<Filter>,
  textValue.map(([property, , values]) => ({ op: 'in', property, values }) as Filter),
  fc
    .tuple(numberNames, fc.array(percent, { maxLength: 4 }))
    .map(([property, values]) => ({ op: 'in', property, values }) as Filter),
  fc.record({ op: comparisons, property: wavelengthNames, value: wavelengths }) as fc.Arbitrary<Filter>,
  fc
    .tuple(wavelengthNames, fc.array(wavelengths, { maxLength: 4 }))
    .map(([property, values]) => ({ op: 'in', property, values }) as Filter),
  patterns,
  fc
    .constantFrom(
      'hsi:wavelength_min',
      'eo:cloud_cover',
      'platform',
      'start_datetime',
      'end_datetime',
      'id',
      'geometry',
    )
    .map((property) => ({ op: 'isNull', property }) as Filter),
  fc.record({
    op: fc.constantFrom(...(Object.keys(spatialRelations) as SpatialOp[]), 's_intersects'),
    shape: shapes,
  }) as fc.Arbitrary<Filter>,
  fc.record({
    op: fc.constantFrom(...(Object.keys(temporalRelations) as TemporalOp[])),
    property: timeNames,
    period: openPeriods,
  }) as fc.Arbitrary<Filter>,
  fc.constantFrom(...(['and', 'or'] as const)).map((op): Filter => ({ op, args: [] })),
);

/** Filters of up to three levels. */
export const filters: fc.Arbitrary<Filter> = fc.letrec<{ tree: Filter }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'filter' },
    { weight: 3, arbitrary: conditions },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constantFrom('and', 'or'),
        args: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
      }) as fc.Arbitrary<Filter>,
    },
    { weight: 1, arbitrary: tie('tree').map((arg): Filter => ({ op: 'not', arg })) },
  ),
})).tree;

/** A filter of which some tile is known to be found more often: one condition that many fulfil. */
export const wideFilters: fc.Arbitrary<Filter> = fc.oneof(
  fc.constant(all([])),
  conditions,
  conditions.map((arg): Filter => ({ op: 'not', arg })),
);
