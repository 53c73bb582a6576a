/** Options that describe a raster without own metadata: its georeferencing, and the wavelengths of its bands. */
import {
  crsFromEpsg,
  type GeoreferencingOverride,
  isWavelength,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  type RasterHeader,
} from '../../../raster/index.js';
import { badOption } from '../../errors.js';
import type { DescribeOptions } from '../../ingest-scene-description.js';
import { datetimeOption } from '../shared/index.js';

const POSITION_FORMAT = 'EPSG:CODE,ULX,ULY,LRX,LRY, such as EPSG:32633,500000,5300000,503000,5297000';

/** The value of --position; undefined without the option. Throws TW_INGEST_BAD_OPTION and TW_RASTER_UNKNOWN_CRS. */
export function positionOption({ position }: DescribeOptions): GeoreferencingOverride | undefined {
  if (position === undefined) return undefined;
  const [system, ...rest] = position.split(',');
  const code = /^EPSG:(\d{4,6})$/i.exec(system!.trim())?.[1];
  const numbers = rest.map((text) => (text.trim() === '' ? NaN : Number(text)));
  const [left, top, right, bottom] = numbers as [number, number, number, number];
  if (code === undefined || numbers.length !== 4 || !numbers.every(Number.isFinite))
    throw badOption('--position', position, POSITION_FORMAT);
  if (left >= right || bottom >= top)
    throw badOption('--position', position, 'a lower right corner that is south-east of the upper left one');
  return { crs: crsFromEpsg(Number(code)), corners: [left, top, right, bottom] };
}

/** Refuses options that count bands, because something else names the bands. Throws TW_INGEST_BAD_OPTION. */
export function refuseBandFlags({ bands, maskBand }: DescribeOptions, reason: string): void {
  const expected = `the flag to be left out, because ${reason}`;
  const named = Object.entries(bands ?? {}).map(([name, number]) => `${name}=${number}`);
  if (bands) throw badOption('--bands', named.join(','), expected);
  if (maskBand !== undefined) throw badOption('--mask-band', String(maskBand), expected);
}

/** Checks options whose value can be wrong for every input. Throws TW_INGEST_BAD_OPTION and TW_RASTER_UNKNOWN_CRS. */
export function checkOptions(options: DescribeOptions): void {
  datetimeOption(options);
  positionOption(options);
}

/**
 * The header with the wavelengths of --wavelengths, nm: one for each band, or those of the first and the last band, between
 * which the others are evenly spaced. Unchanged without the option. Throws TW_INGEST_BAD_OPTION.
 */
export function withWavelengths(header: RasterHeader, { wavelengths }: DescribeOptions): RasterHeader {
  if (wavelengths === undefined) return header;
  const said = wavelengths.slice(0, 3).join(',') + (wavelengths.length > 3 ? ',...' : '');
  if (!wavelengths.every(isWavelength))
    throw badOption('--wavelengths', said, `nanometres from ${MIN_WAVELENGTH_NM} to ${MAX_WAVELENGTH_NM}`);
  if (wavelengths.every((nanometres) => nanometres === wavelengths[0]))
    throw badOption('--wavelengths', said, 'wavelengths that differ');
  const { bands } = header;
  const isEnds = wavelengths.length === 2 && bands > 1;
  if (wavelengths.length !== bands && !isEnds)
    throw badOption(
      '--wavelengths',
      `with ${wavelengths.length} values`,
      `${bands}, one for each band, or those of the first and the last band`,
    );
  const [first, last] = wavelengths as [number, number];
  const step = (last - first) / (bands - 1);
  const at = (band: number) => wavelengths[band] ?? NaN;
  const even = (band: number) => Number((first + band * step).toFixed(3));
  const wavelengthOf = wavelengths.length === bands ? at : even;
  return {
    ...header,
    bandTags: header.bandTags.map((tags, band) => ({ ...tags, wavelength: wavelengthOf(band) })),
  };
}
