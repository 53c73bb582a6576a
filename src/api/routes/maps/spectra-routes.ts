/** Spectra of a point or polygon. */
import { parseZone, type SpectrumDate } from '../../../imagery/index.js';
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

interface SpectraBody extends FilterParams {
  geometry: { type: string };
}

const body = closedObject(
  { geometry: zoneSchema, ...filterBody, datetime: datetimeSchema({ periods: true }) },
  { required: ['geometry'] },
);

const describe = describeWithTag('series');

export const spectraRoutes: RouteGroup = async (server, { services }) => {
  server.post<{ Body: SpectraBody }>(
    '/spectra',
    describe(
      'The spectrum of a point or polygon on each date, of tiles of imaging spectrometers',
      { 200: jsonResponse('Spectra', 'Dates, the earliest first; wavelengths in nm') },
      { body },
    ),
    async (request) => {
      const { geometry, ...params } = request.body;
      const region = parseZone(geometry);
      const filter = defaultToRawSource(parseFilter(params, { periods: true }));
      const { dates, skipped, unanswered } = await services.imagery.spectra({ region, filter });
      const sensors = new Map<string, SpectrumDate['bands']>();
      const sensorOf = ({ bands }: SpectrumDate) => {
        const key = JSON.stringify(bands);
        sensors.set(key, bands);
        return [...sensors.keys()].indexOf(key);
      };
      const spectra = dates.map((date) => documentOf(date, sensorOf(date), region.kind === 'point'));
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

function bandOf({ name, wavelength, fwhm, good }: SpectrumDate['bands'][number]) {
  return { name, wavelength, ...(fwhm !== undefined && { fwhm }), ...(good === false && { bad_band: true }) };
}

/** A point has values; a polygon has means and standard deviations. A value is null if its band has no data. */
function documentOf(
  { start, end, collection, scenes, valid, pixels, mean, std }: SpectrumDate,
  sensor: number,
  isPoint: boolean,
) {
  const numbers = (values: number[]) => values.map((value) => (Number.isNaN(value) ? null : value));
  return {
    datetime: isoTime(start),
    ...(end !== start && { end_datetime: isoTime(end) }),
    collection,
    scenes,
    sensor,
    ...(isPoint ? { values: numbers(mean) } : { mean: numbers(mean), std: numbers(std) }),
    valid,
    pixels,
  };
}
