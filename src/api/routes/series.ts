/** Time series and spectra of a point or polygon. */
import { parseZone, type SeriesDate, type SpectrumDate } from '../../imagery/index.js';
import {
  datetimeSchema,
  defaultToRawSource,
  type FilterParams,
  filterBody,
  isoTime,
  parseFilter,
} from '../../query/index.js';
import { documented } from '../../utils/json-schema.js';
import { partialMembers, untilDisconnected } from '../answers.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';

interface ZoneBody extends FilterParams {
  geometry: { type: string };
}

const GEOMETRY_TYPES = ['Point', 'Polygon', 'MultiPolygon', 'Feature', 'FeatureCollection'];

const geometry = documented(
  {
    type: 'object',
    description:
      'GeoJSON Point, Polygon or MultiPolygon in longitude and latitude, also as a Feature or a collection of one Feature',
  },
  { required: ['type'], properties: { type: { enum: GEOMETRY_TYPES } } },
);

/** JSON Schema of a request for a place: its geometry, the `required` members and a filter. */
const bodyOf = (required: object) =>
  closedObject(
    { geometry, ...required, ...filterBody, datetime: datetimeSchema({ periods: true }) },
    { required: ['geometry', ...Object.keys(required)] },
  );

const filterOf = (params: FilterParams) => defaultToRawSource(parseFilter(params, { periods: true }));

const describe = describeWithTag('series');

export const seriesRoutes: RouteGroup = async (server, { services: { imagery } }) => {
  server.post<{ Body: ZoneBody & { expression: string } }>(
    '/timeseries',
    describe(
      'Values of an expression at a point or polygon, by date',
      { 200: jsonResponse('Series', 'Dates, the earliest first') },
      { body: bodyOf({ expression: { type: 'string' } }) },
    ),
    async ({ body: { geometry, expression, ...params } }, reply) => {
      const region = parseZone(geometry);
      const query = { region, expression, filter: filterOf(params) };
      const { dates, skipped, unanswered } = await imagery.series(query, untilDisconnected(reply));
      return {
        expression,
        geometry,
        series: dates.map((date) => seriesEntry(date, region.kind === 'point')),
        skipped,
        ...partialMembers({ unanswered }),
      };
    },
  );

  server.post<{ Body: ZoneBody }>(
    '/spectra',
    describe(
      'The spectrum of a point or polygon on each date, from tiles of imaging spectrometers',
      { 200: jsonResponse('Spectra', 'Dates, the earliest first; wavelengths in nm') },
      { body: bodyOf({}) },
    ),
    async ({ body: { geometry, ...params } }, reply) => {
      const region = parseZone(geometry);
      const query = { region, filter: filterOf(params) };
      const { dates, skipped, unanswered } = await imagery.spectra(query, untilDisconnected(reply));
      const sensors = new Map<string, SpectrumDate['bands']>();
      const sensorOf = ({ bands }: SpectrumDate) => {
        const key = JSON.stringify(bands);
        sensors.set(key, bands);
        return [...sensors.keys()].indexOf(key);
      };
      const spectra = dates.map((date) => spectrumEntry(date, sensorOf(date), region.kind === 'point'));
      return {
        geometry,
        sensors: [...sensors.values()].map((bands) => ({ bands: bands.map(bandOf) })),
        spectra,
        skipped,
        ...partialMembers({ unanswered }),
      };
    },
  );
};

/** The origin of the values of a date. */
const originOf = ({ start, end, collection, scenes }: SeriesDate | SpectrumDate) => ({
  datetime: isoTime(start),
  ...(end !== start && { end_datetime: isoTime(end) }),
  collection,
  scenes,
});

/** A point has a value; a polygon has statistics. Values are NaN, in JSON null, if no pixel is valid. */
function seriesEntry(date: SeriesDate, isPoint: boolean) {
  const { mean, std, min, max, median, valid, pixels } = date;
  const values = isPoint ? { value: mean } : { mean, std, min, max, median };
  return { ...originOf(date), ...values, valid, pixels };
}

function bandOf({ name, wavelength, fwhm, good }: SpectrumDate['bands'][number]) {
  return { name, wavelength, fwhm, ...(good === false && { bad_band: true }) };
}

/** A point has values; a polygon has means and standard deviations. A value is NaN, in JSON null, if its band has no data. */
function spectrumEntry(date: SpectrumDate, sensor: number, isPoint: boolean) {
  const { mean, std, valid, pixels } = date;
  const values = isPoint ? { values: mean } : { mean, std };
  return { ...originOf(date), sensor, ...values, valid, pixels };
}
