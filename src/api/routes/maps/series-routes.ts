/** Time series of a point or polygon. */
import { parseZone, type SeriesDate } from '../../../imagery/index.js';
import {
  datetimeSchema,
  defaultToRawSource,
  type FilterParams,
  filterBody,
  isoTime,
  parseFilter,
} from '../../../query/index.js';
import type { RouteGroup } from '../../api-services.js';
import { partialMembers } from '../../http/index.js';
import { closedObject, describeWithTag, jsonResponse } from '../../schemas/index.js';
import { zoneSchema } from './zone-schema.js';

interface SeriesBody extends FilterParams {
  geometry: { type: string };
  expression: string;
}

const body = closedObject(
  {
    geometry: zoneSchema,
    expression: { type: 'string' },
    ...filterBody,
    datetime: datetimeSchema({ periods: true }),
  },
  { required: ['geometry', 'expression'] },
);

const describe = describeWithTag('series');

export const seriesRoutes: RouteGroup = async (server, { services }) => {
  server.post<{ Body: SeriesBody }>(
    '/timeseries',
    describe(
      'Values of an expression at a point or polygon, by date',
      { 200: jsonResponse('Series', 'Dates, the earliest first') },
      { body },
    ),
    async (request) => {
      const { geometry, expression, ...params } = request.body;
      const region = parseZone(geometry);
      const { dates, skipped, unanswered } = await services.imagery.series({
        region,
        expression,
        filter: defaultToRawSource(parseFilter(params, { periods: true })),
      });
      return {
        expression,
        geometry,
        series: dates.map((date) => documentOf(date, region.kind === 'point')),
        skipped,
        ...partialMembers({ unanswered }),
      };
    },
  );
};

/** A point has a value; a polygon has statistics. Values are null if no pixel is valid. */
function documentOf(
  { start, end, collection, scenes, pixels, valid, ...values }: SeriesDate,
  point: boolean,
) {
  const orNull = (value: number) => (Number.isNaN(value) ? null : value);
  const { mean, std, min, max, median } = values;
  return {
    datetime: isoTime(start),
    ...(end !== start && { end_datetime: isoTime(end) }),
    collection,
    scenes,
    ...(point
      ? { value: orNull(mean) }
      : {
          mean: orNull(mean),
          std: orNull(std),
          min: orNull(min),
          max: orNull(max),
          median: orNull(median),
        }),
    valid,
    pixels,
  };
}
