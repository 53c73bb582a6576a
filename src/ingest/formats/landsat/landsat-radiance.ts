/**
 * Landsat 4 to 7 with radiance coefficients only, as delivered before the collections: reflectance at the top of the atmosphere and
 * brightness temperature after Chander, Markham and Helder (2009), "Summary of current radiometric calibration coefficients for Landsat
 * MSS, TM, ETM+, and EO-1 ALI sensors", Remote Sensing of Environment 113.
 */
import type { RasterHeader } from '../../../raster/index.js';
import { DAY_MS } from '../shared/index.js';
import { mtlValue } from './landsat-mtl.js';
import type { LandsatProduct } from './landsat-product.js';

/** A linear function of the stored number: spectral radiance in W/(m2 sr um), or reflectance. */
export interface LinearScale {
  scale: number;
  offset: number;
}

/** Mean solar irradiance outside the atmosphere, W/(m2 um), of bands 1 to 8 by spacecraft; tables 2, 3 and 4. */
const SOLAR_IRRADIANCE: Record<number, (number | undefined)[]> = {
  4: [1983, 1795, 1539, 1028, 219.8, undefined, 83.49],
  5: [1983, 1796, 1536, 1031, 220.0, undefined, 83.44],
  7: [1997, 1812, 1533, 1039, 230.8, undefined, 84.9, 1362],
};

/** Constants of the thermal band by spacecraft, table 5: k1 in W/(m2 sr um), k2 in kelvin. */
const THERMAL_CONSTANTS: Record<number, { k1: number; k2: number }> = {
  4: { k1: 671.62, k2: 1284.3 },
  5: { k1: 607.76, k2: 1260.56 },
  7: { k1: 666.09, k2: 1282.71 },
};

/** Distance in astronomical units at a time in ms since 1970: the low-precision formula of the Astronomical Almanac, within 1e-4. */
export function earthSunDistance(time: number): number {
  const days = (time - Date.UTC(2000, 0, 1, 12)) / DAY_MS;
  const anomaly = ((357.528 + 0.9856003 * days) * Math.PI) / 180;
  return 1.00014 - 0.01671 * Math.cos(anomaly) - 0.00014 * Math.cos(2 * anomaly);
}

/** A number of the MTL, under the first of these keys that it has; NaN if it has none. */
export function mtlNumber({ mtl }: LandsatProduct, ...keys: string[]): number {
  return Number(mtl ? mtlValue(mtl, ...keys) : NaN);
}

/**
 * Radiance of a band; undefined if the MTL has no coefficients. `suffix` is the band in keys of today, such as `6_VCID_1`. Older MTLs
 * have the radiances of the lowest and the highest stored number instead, and before 2012 they are called LMIN and LMAX.
 */
export function radianceScale(product: LandsatProduct, suffix: string): LinearScale | undefined {
  const scale = mtlNumber(product, `RADIANCE_MULT_BAND_${suffix}`);
  const offset = mtlNumber(product, `RADIANCE_ADD_BAND_${suffix}`);
  if (Number.isFinite(scale + offset)) return { scale, offset };
  const old = suffix.replace('_VCID_', '');
  const lowest = mtlNumber(product, `RADIANCE_MINIMUM_BAND_${suffix}`, `LMIN_BAND${old}`);
  const highest = mtlNumber(product, `RADIANCE_MAXIMUM_BAND_${suffix}`, `LMAX_BAND${old}`);
  const first = mtlNumber(product, `QUANTIZE_CAL_MIN_BAND_${suffix}`, `QCALMIN_BAND${old}`);
  const last = mtlNumber(product, `QUANTIZE_CAL_MAX_BAND_${suffix}`, `QCALMAX_BAND${old}`);
  const slope = (highest - lowest) / (last - first);
  return Number.isFinite(slope) ? { scale: slope, offset: lowest - slope * first } : undefined;
}

/** Reflectance at the top of the atmosphere, equation 2; undefined if the height of the sun or the irradiance is unknown. */
export function reflectanceScale(
  product: LandsatProduct,
  band: number,
  { scale, offset }: LinearScale,
): LinearScale | undefined {
  const irradiance = SOLAR_IRRADIANCE[product.spacecraft]?.[band - 1];
  const sun = Math.sin((mtlNumber(product, 'SUN_ELEVATION') * Math.PI) / 180);
  if (irradiance === undefined || !(sun > 0)) return undefined;
  const stated = mtlNumber(product, 'EARTH_SUN_DISTANCE');
  const distance = Number.isFinite(stated) ? stated : earthSunDistance(product.start);
  const factor = (Math.PI * distance ** 2) / (irradiance * sun);
  return { scale: factor * scale, offset: factor * offset };
}

/** Stored numbers of brightness temperature are hundredths of a kelvin. */
export const KELVIN_SCALE = 0.01;

/**
 * The raster of a thermal band, read as brightness temperature in units of `KELVIN_SCALE`, equation 3. 0, and a radiance of 0 or less, are
 * read as 0: no data. Undefined if the spacecraft has no constants, or the stored numbers have neither 8 nor 16 bits.
 */
export function brightnessTemperature(
  product: LandsatProduct,
  suffix: string,
  header: RasterHeader,
  { scale, offset }: LinearScale,
): RasterHeader | undefined {
  const published = THERMAL_CONSTANTS[product.spacecraft];
  const { dataType } = header;
  if (!published || (dataType !== 'uint8' && dataType !== 'uint16')) return undefined;
  const stated = [
    mtlNumber(product, `K1_CONSTANT_BAND_${suffix}`),
    mtlNumber(product, `K2_CONSTANT_BAND_${suffix}`),
  ];
  const [k1, k2] = stated.every(Number.isFinite)
    ? (stated as [number, number])
    : [published.k1, published.k2];
  const table = Uint16Array.from({ length: dataType === 'uint8' ? 256 : 65_536 }, (_, stored) => {
    const radiance = scale * stored + offset;
    const kelvin = stored > 0 && radiance > 0 ? k2 / Math.log(k1 / radiance + 1) : 0;
    return Math.min(65_535, Math.round(kelvin / KELVIN_SCALE));
  });
  return { ...header, dataType: 'uint16', nodata: 0, recoding: { dataType, table } };
}
