/** Random filters over the tiles of tiles.ts. */
import fc from 'fast-check';
import type { Like } from '../../src/query/filter.js';
import {
  type NumberExpression,
  type PeriodExpression,
  propertiesOf,
  type TextExpression,
} from '../../src/query/filter.js';
import { type SpatialOp, spatialRelations } from '../../src/query/geometry.js';
import { and, type Filter } from '../../src/query/index.js';
import { arithmeticOps, type TemporalOp, temporalRelations } from '../../src/query/operators.js';
import { shapes } from './spatial-oracle.js';
import { cells, day, percent, tileSources, times, wavelengths } from './tiles.js';

const comparisons = fc.constantFrom('=', '<>', '<', '<=', '>', '>=');
const timeNames = fc.constantFrom('datetime', 'start_datetime', 'end_datetime', 'created');
const numberNames = fc.constantFrom('eo:cloud_cover', 'pixel_coverage');
const wavelengthNames = fc.constantFrom('hsi:wavelength_min', 'hsi:wavelength_max');

const texts = {
  id: cells.map(({ geocode }) => `a_s1_g${geocode}`),
  collection: fc.constantFrom('a', 'b', 'a_b', 'unknown'),
  platform: fc.constantFrom('sentinel-2a', 'landsat-8', 'Straße', 'unknown'),
  source: fc.constantFrom(...tileSources),
  scene: fc.constantFrom('s1', 's2', 's9', 'unknown'),
  geocode: fc.oneof(
    cells.map(({ geocode }) => geocode),
    cells.map(({ geocode }) => geocode.slice(0, 2)),
    fc.constantFrom('not', ''),
  ),
  'grid:code': cells.map(({ grid, geocode }) => `${grid.toUpperCase()}-${geocode}`),
};

/** A text property with one of its values. */
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
/** An instant or a day, with which a time is compared. */
const instants = fc
  .tuple(times, fc.constantFrom(0, day - 1))
  .map(([start, length]) => [start, start + length]);
const openPeriods = fc.oneof(
  periods,
  periods.map(([start]): [number, null] => [start, null]),
  periods.map(([, end]): [null, number] => [null, end]),
  fc.constant<[null, null]>([null, null]),
);

const isComputed = (value: unknown) => typeof value === 'object' && value !== null && !('property' in value);

/** Readers omit a fold that was applied before. */
const hasFold = (text: TextExpression, op: string): boolean =>
  typeof text === 'object' && 'op' in text && (text.op === op || hasFold(text.arg, op));

/** Values with a property. Readers compute values without one, and put literals to the right. */
const { ofNumbers, ofTexts } = fc.letrec<{ ofNumbers: NumberExpression; ofTexts: TextExpression }>((tie) => {
  const number = fc.oneof(percent, fc.constantFrom(0, 0.5, 1, 2, 10, -3, 40.2), tie('ofNumbers'));
  const both = (left: fc.Arbitrary<NumberExpression>, right: fc.Arbitrary<NumberExpression>) =>
    fc.tuple(fc.constantFrom(...arithmeticOps), left, right).map(([op, a, b]) => ({ op, args: [a, b] }));
  return {
    ofNumbers: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'number' },
      fc.oneof(numberNames, wavelengthNames).map((property) => ({ property })),
      both(tie('ofNumbers'), number),
      both(number, tie('ofNumbers')),
    ) as fc.Arbitrary<NumberExpression>,
    ofTexts: fc.oneof(
      { maxDepth: 2, depthIdentifier: 'text' },
      textValue.map(([property]) => ({ property })),
      fc.constantFrom('platform', 'scene', 'source').map((property) => ({ property })),
      fc
        .tuple(fc.constantFrom('casei', 'accenti'), tie('ofTexts'))
        .map(([op, arg]) => (hasFold(arg, op) ? arg : ({ op, arg } as TextExpression))),
    ) as fc.Arbitrary<TextExpression>,
  };
});

const someText = fc.oneof(
  textValue.map(([, text]) => text),
  fc.constantFrom('strasse', 'KOBENHAVN', 'københavn', 'landsat-8', 'raw', 's1'),
);
const periodEnds = fc.oneof(
  times,
  fc.constant(null),
  timeNames.map((property) => ({ property })),
);
const periodValues = fc.oneof(
  timeNames.map((property) => ({ property })),
  fc.tuple(periodEnds, periodEnds).map((interval) => ({ interval })),
  fc.constantFrom('datetime', 'start_datetime').map((property) => ({
    interval: [{ property }, { property: 'end_datetime' }],
  })),
) as fc.Arbitrary<PeriodExpression>;

const isLiteral = (period: PeriodExpression) => propertiesOf(period).length === 0;
const isBackward = (period: PeriodExpression) =>
  'interval' in period &&
  typeof period.interval[0] === 'number' &&
  typeof period.interval[1] === 'number' &&
  period.interval[0] > period.interval[1];

const expressions: fc.Arbitrary<Filter> = fc.oneof(
  fc
    .record({ sign: comparisons, left: ofNumbers, right: fc.oneof(percent, ofNumbers) })
    .filter(({ left, right }) => isComputed(left) || typeof right === 'object')
    .map(({ sign, left, right }) => ({ op: 'compare', kind: 'number', sign, args: [left, right] }) as Filter),
  fc
    .record({ sign: comparisons, left: ofTexts, right: fc.oneof(someText, ofTexts) })
    .filter(({ left, right }) => isComputed(left) || typeof right === 'object')
    .map(({ sign, left, right }) => ({ op: 'compare', kind: 'text', sign, args: [left, right] }) as Filter),
  fc
    .record({ sign: comparisons, left: timeNames, right: timeNames })
    .map(
      ({ sign, left, right }) =>
        ({ op: 'compare', kind: 'time', sign, args: [{ property: left }, { property: right }] }) as Filter,
    ),
  fc
    .record({ text: ofTexts.filter(isComputed), like: patterns })
    .map(({ text, like }): Filter => ({ op: 'match', text, pattern: (like as Like).pattern })),
  fc
    .record({
      relation: fc.constantFrom(...(Object.keys(temporalRelations) as TemporalOp[])),
      args: fc.tuple(periodValues, periodValues),
    })
    .filter(({ args: [a, b] }) => !isBackward(a) && !isBackward(b))
    .filter(({ args: [a, b] }) => {
      if (isLiteral(a) || isLiteral(b)) return [a, b].some((one) => 'interval' in one && !isLiteral(one));
      return true;
    })
    .map(({ relation, args }): Filter => ({ op: 'periods', relation, args })),
);

const simpleConditions: fc.Arbitrary<Filter> = fc.oneof(
  fc
    .record({ op: comparisons, text: textValue })
    .map(({ op, text: [property, value] }) => ({ op, property, value }) as Filter),
  fc.record({ op: comparisons, property: numberNames, value: percent }) as fc.Arbitrary<Filter>,
  fc.record({ op: comparisons, property: timeNames, period: instants }) as fc.Arbitrary<Filter>,
  textValue.map(([property, , values]) => ({ op: 'in', property, values }) as Filter),
  fc
    .tuple(numberNames, fc.array(percent, { maxLength: 4 }))
    .map(([property, values]) => ({ op: 'in', property, values }) as Filter),
  fc
    .tuple(timeNames, fc.array(instants, { minLength: 1, maxLength: 6 }))
    .map(([property, periods]) => ({ op: 'in', property, periods }) as Filter),
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
  fc.constantFrom('and' as const, 'or' as const).map((op): Filter => ({ op, args: [] })),
);

/** IS NULL around a condition that depends on the tile. */
const isOfTiles = (filter: Filter) =>
  filter.op !== 'and' &&
  filter.op !== 'or' &&
  !(filter.op === 'in' && 'values' in filter && filter.values.length === 0);

const conditions: fc.Arbitrary<Filter> = fc.oneof(
  { weight: 12, arbitrary: simpleConditions },
  { weight: 6, arbitrary: expressions },
  {
    weight: 1,
    arbitrary: fc
      .oneof(simpleConditions, expressions)
      .filter(isOfTiles)
      .chain(
        (arg): fc.Arbitrary<Filter> =>
          fc.constantFrom<Filter>({ op: 'isUnknown', arg }, { op: 'isUnknown', arg: { op: 'not', arg } }),
      ),
  },
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

/** A filter that often matches a tile: one condition that many tiles meet. */
export const wideFilters: fc.Arbitrary<Filter> = fc.oneof(
  fc.constant(and([])),
  conditions,
  conditions.map((arg): Filter => ({ op: 'not', arg })),
);

/** A limit of the cloud cover. */
export const cloud = (op: '<' | '<=' | '>=' | '=', value: number): Filter => ({
  op,
  property: 'eo:cloud_cover',
  value,
});

export const minute = Date.UTC(2021, 3, 8, 4, 39, 23);
