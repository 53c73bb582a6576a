/** Reads the time axis of a CF variable (CF-1.11, section 4.4). */

import { corrupt, unsupported } from '../../errors.js';
import { aliasTable } from '../../raster-alias-table.js';
import { type Hdf5File, withHdf5 } from '../hdf5-file.js';

export interface TimeAxis {
  /**
   * Start and end of each step, milliseconds since 1970; the end is the start of the next step. Both are equal if there are no
   * bounds.
   */
  steps: { start: number; end: number }[];
  /** Bands of one step: 1, or the product of the dimensions between time and rows. */
  bandsPerStep: number;
}

/** Milliseconds of each unit. */
const UNITS = aliasTable([
  [1e3, 'second sec s'],
  [6e4, 'minute min'],
  [3.6e6, 'hour hr h'],
  [8.64e7, 'day d'],
]);
const CALENDARS = new Set(['', 'standard', 'gregorian', 'proleptic_gregorian']);
/** Limit of the steps, as many as a header may have bands. */
const MAX_TIME_STEPS = 1_000_000;

/**
 * The steps of a dataset's first dimension if that is time; undefined if no dimension is. Throws TW_RASTER_UNREADABLE,
 * _CORRUPT, and _UNSUPPORTED for calendars other than the standard one.
 */
export function openTimeAxis(path: string, layer: string): Promise<TimeAxis | undefined> {
  return withHdf5(path, (file) => timeAxisOf(file, layer));
}

function timeAxisOf(file: Hdf5File, layer: string): TimeAxis | undefined {
  const dataset = file.dataset(layer);
  const shape = (dataset && file.metadata(dataset).shape) ?? [];
  if (!dataset || shape.length < 3) return undefined;
  const leading = file.dimensionScales(dataset).slice(0, -2);
  const place = leading.findIndex(([scale]) => scale !== undefined && isTime(file, scale));
  if (place < 0) return undefined;
  if (place > 0) throw unsupported(file.path, `time is not the first dimension of ${layer}`);
  const [axis] = leading[0];
  const { units, calendar = '', bounds } = file.attributes(axis);
  if (!CALENDARS.has(String(calendar).toLowerCase())) {
    throw unsupported(
      file.path,
      `its times are of the calendar ${calendar}, and a conversion loses them: write each time step to a file (gdal_translate -b N) and ingest it with --datetime`,
    );
  }
  const toTime = createTimeDecoder(file.path, String(units));
  const starts = numbersOf(file, axis, [shape[0]]);
  const limits = typeof bounds === 'string' ? `${axis.replace(/[^/]*$/, '')}${bounds}` : undefined;
  const spans = limits && file.dataset(limits) ? numbersOf(file, limits, [shape[0], 2]) : undefined;
  const steps = Array.from({ length: shape[0] }, (_, i) => ({
    start: toTime(spans ? spans[2 * i] : starts[i]),
    end: toTime(spans ? spans[2 * i + 1] : starts[i]),
  }));
  return { steps, bandsPerStep: shape.slice(1, -2).reduce((product, size) => product * size, 1) };
}

function isTime(file: Hdf5File, scale: string): boolean {
  const { standard_name: name, units } = file.attributes(scale);
  return name === 'time' || (typeof units === 'string' && /^\s*\w+\s+since\s/i.test(units));
}

function numbersOf(file: Hdf5File, path: string, expected: number[]): number[] {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.join() !== expected.join()) {
    throw corrupt(file.path, `${path} is ${shape.join(' x ')}, not ${expected.join(' x ')}`);
  }
  if (expected[0] > MAX_TIME_STEPS) throw unsupported(file.path, `it has ${expected[0]} times`);
  const ranges = shape.map((size): [number, number] => [0, size]);
  return Array.from(file.slice(dataset, ranges), Number);
}

/** Parses units such as "days since 1900-01-01 00:00:00"; times without a zone are UTC. */
function createTimeDecoder(path: string, units: string): (value: number) => number {
  const match =
    /^\s*(\w+?)s?\s+since\s+(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}(?:\.\d*)?))?)?\s*(Z|UTC|[-+]\d{1,2}:?\d{2})?\s*$/i.exec(
      units,
    );
  const name = match?.[1].toLowerCase() ?? '';
  const unit = Object.hasOwn(UNITS, name) ? UNITS[name] : undefined;
  if (!match || unit === undefined) throw unsupported(path, `its times are in "${units}"`);
  const [, , year, month, day, hour = '0', minute = '0', second = '0', zone = 'Z'] = match;
  const [, sign, hours = '0', minutes = '0'] = /^([-+])(\d{1,2}):?(\d{2})$/.exec(zone) ?? [];
  const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 6e4;
  const date = new Date(0);
  // Not by Date.UTC, which treats the year 1 as 1901.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), 0, Number(second) * 1e3);
  const epoch = date.getTime() - shift;
  return (value) => {
    const time = Math.round(epoch + value * unit);
    if (Number.isNaN(new Date(time).getTime())) throw corrupt(path, `its time ${value} ${units} is none`);
    return time;
  };
}
