/**
 * How dates of one place differ: the season of the land, haze, and the gain of the sensor. The strengths are those of the clear dates of
 * real series of Landsat 8 reflectances, see `test/data-samples/dates.test.ts`.
 */
import { greenFraction, KINDS, type Kind, Kinds } from './kinds.js';
import type { Landscape } from './landscape.js';
import { fractalNoise, type View, valueNoise } from './noise.js';
import { uniform } from './random.js';

export const DATE_EFFECTS = {
  /** The strongest haze: reflectance added at 0.561 µm. It is inversely proportional to the wavelength (Ångström exponent 1). */
  haze: 0.03,
  /** The gain of a date and band is within 1 ± `gain`, its offset within ± `offset` (reflectance). */
  gain: 0.05,
  offset: 0.002,
  /** A kind of land is up to `year` days early or late in a year, a field up to `field` days more. */
  shiftDays: { year: 10, field: 20 },
  /** Largest change of the green fraction of fields, meadows and gardens by dry and wet weather. That of the ground is 0.7 of it. */
  weather: 0.6,
  /** How much of it applies to forests. */
  forest: 0.4,
} as const;

/** Centres of the bands of a `Spectrum`, µm. */
export const WAVELENGTHS = [0.443, 0.482, 0.561, 0.655, 0.865, 1.609, 2.201] as const;
const GREEN = 2;
/** Metres between points at which haze and weather are independent, and days between such weathers. */
const HAZE_SPACING = 9000;
const WEATHER_SPACING = 500;
const WEATHER_DAYS = 30;

/** 1 for the first of January (UTC). */
export function dayOfYear(datetime: string): number {
  return dayNumber(datetime) - dayNumber(`${new Date(datetime).getUTCFullYear()}-01-01T00:00:00Z`) + 1;
}

/** Days since the end of 2022 (UTC), so 1 to 365 in 2023. */
export function dayNumber(datetime: string): number {
  return Math.floor((Date.parse(datetime) - Date.UTC(2022, 11, 31)) / 86_400_000);
}

/** The state of the land on a date. One value a pixel. */
export interface Season {
  green: Float32Array;
  /** Factor of the reflectance of the ground between the leaves. */
  ground: Float32Array;
}

/** The season in an average year: all fields of a kind are alike, and the weather has no effect. */
export function averageSeason({ kind, green }: Landscape, day: number): Season {
  const fractions = (KINDS as readonly Kind[]).map((one) => greenFraction(one, day));
  return { green: green.map((factor, i) => factor * fractions[kind[i]!]!), ground: green.map(() => 1) };
}

/** The season of a date. Years begin earlier or later, fields are sown and harvested on days of their own, and weather lasts for weeks. */
export function seasonOf({ view, kind, green, field }: Landscape, datetime: string, seed: number): Season {
  const year = new Date(datetime).getUTCFullYear();
  const day = dayOfYear(datetime);
  const { shiftDays, weather, forest } = DATE_EFFECTS;
  const within = (most: number, share: number) => Math.round(most * (2 * share - 1));
  const reach = shiftDays.year + shiftDays.field;
  // Green fractions by kind and shift in days.
  const fractions = (KINDS as readonly Kind[]).map((one, k) => {
    const early = within(shiftDays.year, uniform(k, year, 501));
    return Float32Array.from({ length: 2 * reach + 1 }, (_, i) =>
      greenFraction(one, day + early + i - reach),
    );
  });
  const period = Math.floor(dayNumber(datetime) / WEATHER_DAYS);
  const later = dayNumber(datetime) / WEATHER_DAYS - period;
  const [rain, laterRain] = [0, 1].map((i) => uniform(period + i, 0, 503));
  const common = rain! * (1 - later) + laterRain! * later;
  const [before, after] = [0, 1].map((i) =>
    fractalNoise(view, WEATHER_SPACING, 2, seed + 511 + 7 * (period + i)),
  );
  const wet = before!.map((value, i) => weather * (value * (1 - later) + after![i]! * later + common - 1));
  const sensitivity = KINDS.map(({ landCover }) => (landCover === 'forest' ? forest : 1));
  return {
    green: green.map((factor, i) => {
      const early = field[i] === 0 ? 0 : within(shiftDays.field, uniform(field[i]!, year, 502));
      return factor * fractions[kind[i]!]![early + reach]! * (1 + sensitivity[kind[i]!]! * wet[i]!);
    }),
    ground: wet.map((value, i) => (kind[i] === Kinds.water ? 1 : 1 - 0.7 * value)),
  };
}

/** The effects on the way from the ground to the number of a pixel on a date. */
export interface Atmosphere {
  /** Reflectance that haze adds at 0.561 µm, one value a pixel. */
  haze: Float32Array;
  /** By band of a `Spectrum`. */
  gain: number[];
  offset: number[];
}

/** The haze of a place and date, and the gain of the date, which all places share. */
export function atmosphereOf(view: View, datetime: string, seed: number): Atmosphere {
  const day = dayNumber(datetime);
  const { haze, gain, offset } = DATE_EFFECTS;
  // Most dates are nearly clear.
  const strength = haze * uniform(day, 0, seed + 521) ** 2;
  const within = (most: number, salt: number) =>
    WAVELENGTHS.map((_, band) => most * (2 * uniform(day, band, salt) - 1));
  return {
    haze: valueNoise(view, HAZE_SPACING, seed + 1000 * day + 522).map(
      (value) => strength * (0.6 + 0.4 * value),
    ),
    gain: within(gain, 523).map((value) => 1 + value),
    offset: within(offset, 524),
  };
}

/** Applies an atmosphere to the reflectances of a band, in place. */
export function throughAtmosphere(
  reflectance: Float32Array,
  { haze, gain, offset }: Atmosphere,
  band: number,
) {
  const share = WAVELENGTHS[GREEN] / WAVELENGTHS[band]!;
  for (let i = 0; i < reflectance.length; i++)
    reflectance[i] = gain[band]! * (reflectance[i]! + share * haze[i]!) + offset[band]!;
  return reflectance;
}
