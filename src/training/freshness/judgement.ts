/**
 * Decides for each place if its model is still valid, from what all nodes have measured, and chooses the places that are trained again if
 * the duration of the trainings is limited.
 */

import type { GridName } from '../../grid/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { medianOfSorted } from '../../utils/sorted.js';
import { compareText } from '../../utils/text.js';
import type { DateError } from '../date-errors.js';
import { dayOf } from '../dates.js';
import {
  type ChartPoint,
  dateSpread,
  expectedValue,
  judgeDeviations,
  knownDeviations,
  placeSpread,
  pooledSpread,
} from './control-chart.js';

type FreshnessStatus = 'fresh' | 'drifted' | 'unknown';

export interface PlaceFreshness extends CheckedPlace {
  status: FreshnessStatus;
  /** Why the status is unknown. */
  reason?: string;
  /** The first date of the change, RFC 3339. */
  firstDrifted?: string;
  /** Mean squared error on the last new date, and the one that the training lets expect in its season. */
  error?: number;
  promised?: number;
  /** `error` over `promised`, without a change that all places of the collection have in common. */
  ratio?: number;
  /** Number of new dates that were judged. */
  dates: number;
  /** Pixels of the place with data, and the duration of the training of its model in seconds. */
  pixels: number;
  seconds: number;
  /** Passes of this training over the patches of the place. */
  passes?: number;
}

/** Smallest error that counts: the square of the resolution of predicted tiles. Constant ground can have the error 0. */
const MIN_ERROR = 1e-8;
/** How much lower the logarithms of errors on the ground and dates of the training may be than those on later dates. */
const TRAINED_OPTIMISM = 0.3;
/** Minimum number of places for a common change of a day. */
const MIN_COMMON_PLACES = 5;
/** A larger common change is not that of a season or of haze. */
const MAX_COMMON_CHANGE = 1;

interface Chart {
  place: MeasuredPlace;
  known: ChartPoint[];
  spread: number;
  points: { date: DateError; expected: number; change: number }[];
  /** The changes in standard deviations. */
  scores: number[];
}

/**
 * Returns the places in the order of `measured`. The places of a collection are judged day by day: the median change of the places that
 * have not drifted is common to all, as that of a season or of haze, and is subtracted. The ground held out from the training and the other
 * ground of a place have charts of their own, and a change of one of them is a change of the place. The result does not depend on the order
 * of the places.
 */
export function judgePlaces(measured: readonly MeasuredPlace[]): PlaceFreshness[] {
  const judged = new Map<MeasuredPlace, PlaceFreshness>();
  const usable: MeasuredPlace[] = [];
  for (const place of measured) {
    const reason = reasonUnknown(place);
    if (reason === undefined) usable.push(place);
    else judged.set(place, { ...identityOf(place), status: 'unknown', reason, dates: 0 });
  }
  for (const collection of new Set(usable.map((place) => place.collection)))
    for (const trained of [false, true]) {
      const places = usable.filter((place) => place.collection === collection);
      for (const { place, freshness } of judgeCollection(places, trained)) {
        const other = judged.get(place);
        judged.set(place, other ? worse(other, freshness) : freshness);
      }
    }
  return measured.map((place) => judged.get(place)!);
}

function reasonUnknown({ unknown, known, fresh }: MeasuredPlace): string | undefined {
  if (unknown !== undefined) return unknown;
  if (fresh.length === 0) return 'none of the new dates has enough clear ground';
  if (known.length === 0) return 'no date of the training has enough clear ground';
  return fresh.some((date) => known.some((other) => other.trained === date.trained))
    ? undefined
    : 'the new dates and those of the training have too little clear ground in common';
}

/** `a` is on held-out ground, whose errors say more. */
function worse(a: PlaceFreshness, b: PlaceFreshness): PlaceFreshness {
  const isWorse = b.status === 'drifted' && (a.status === 'fresh' || b.ratio! > a.ratio!);
  return { ...(isWorse ? b : a), dates: Math.max(a.dates, b.dates) };
}

const identityOf = ({
  collection,
  grid,
  geocode,
  model,
  version,
  pixels,
  seconds,
  passes,
}: MeasuredPlace) => ({
  ...{ collection, grid, geocode, model, version, pixels, seconds },
  ...(passes !== undefined && { passes }),
});

/** Judges the places of a collection on their held-out ground, or on their other ground. Places without dates there are left out. */
function judgeCollection(
  all: MeasuredPlace[],
  trained: boolean,
): { place: MeasuredPlace; freshness: PlaceFreshness }[] {
  const isOfGround = (date: DateError) => (date.trained ?? false) === trained;
  const places = all.filter((place) => place.known.some(isOfGround) && place.fresh.some(isOfGround));
  const known = places.map((place) => place.known.filter(isOfGround).map(pointOf));
  const deviations = withoutCommon(known.map(knownDeviations));
  // In a fixed order, because sums of floating-point numbers depend on it.
  const pooled = pooledSpread(deviations.flat().sort((a, b) => a - b));
  const charts = places.map(
    (place, i): Chart => ({
      place,
      known: known[i],
      spread: placeSpread(deviations[i], pooled),
      points: [],
      scores: [],
    }),
  );
  const drifted = new Map<Chart, string | undefined>();
  const days = new Map<string, { chart: Chart; date: DateError }[]>();
  for (const chart of charts)
    for (const date of chart.place.fresh.filter(isOfGround)) {
      // Places of one overpass differ by seconds.
      const day = dayOf(Date.parse(date.datetime));
      const sameDay = days.get(day) ?? [];
      sameDay.push({ chart, date });
      days.set(day, sameDay);
    }
  for (const day of [...days.keys()].sort()) {
    const now = days.get(day)!.map(({ chart, date }) => {
      const { time, value } = pointOf(date);
      const expected = expectedValue(chart.known, time) + (trained ? TRAINED_OPTIMISM : 0);
      const spread = dateSpread(chart.known, time, chart.spread);
      return { chart, date, expected, spread, change: value - expected };
    });
    const common = commonChange(
      now.filter(({ chart }) => drifted.get(chart) === undefined).map(({ change }) => change),
    );
    for (const { chart, date, expected, change, spread } of now) {
      chart.points.push({ date, expected, change: change - common });
      chart.scores.push((change - common) / spread);
    }
    for (const chart of new Set(now.map((one) => one.chart))) {
      const { firstDrifted } = judgeDeviations(chart.scores);
      drifted.set(chart, firstDrifted === undefined ? undefined : chart.points[firstDrifted].date.datetime);
    }
  }
  return charts.map((chart) => ({ place: chart.place, freshness: freshnessOf(chart, drifted.get(chart)) }));
}

function freshnessOf({ place, points }: Chart, firstDrifted: string | undefined): PlaceFreshness {
  const last = points.at(-1)!;
  const promised = Math.exp(last.expected);
  return {
    ...identityOf(place),
    status: firstDrifted === undefined ? 'fresh' : 'drifted',
    ...(firstDrifted !== undefined && { firstDrifted }),
    error: last.date.error,
    promised,
    ratio: Math.exp(last.change),
    dates: points.length,
  };
}

/** Returns the deviations of each place without those that are common to the places on a day, which new dates do not have either. */
function withoutCommon(places: readonly ChartPoint[][]): number[][] {
  const byDay = new Map<string, number[]>();
  for (const { time, value } of places.flat()) {
    const day = dayOf(time);
    const sameDay = byDay.get(day) ?? [];
    sameDay.push(value);
    byDay.set(day, sameDay);
  }
  const common = new Map(Array.from(byDay, ([day, values]) => [day, commonChange(values)]));
  return places.map((place) => place.map(({ time, value }) => value - common.get(dayOf(time))!));
}

function commonChange(changes: number[]): number {
  if (changes.length < MIN_COMMON_PLACES) return 0;
  const median = medianOfSorted(Float64Array.from(changes).sort());
  return Math.max(-MAX_COMMON_CHANGE, Math.min(MAX_COMMON_CHANGE, median));
}

function pointOf({ datetime, error }: DateError): ChartPoint {
  return { time: Date.parse(datetime), value: Math.log(error + MIN_ERROR) };
}

interface CheckedPlace {
  collection: string;
  grid: GridName;
  geocode: string;
  /** Id and version of its latest model; the version is absent if the record of the model is damaged. */
  model: string;
  version?: string;
}

export interface MeasuredPlace extends CheckedPlace {
  /** Errors on the dates of the training, and on later dates, the earliest first. */
  known: DateError[];
  fresh: DateError[];
  /** Pixels of the place with data. */
  pixels: number;
  /** Duration of the training of its model. */
  seconds: number;
  /**
   * Passes of this training over the patches of the place; patches of other places count as fractions of a pass. Nodes of older versions
   * do not report it.
   */
  passes?: number;
  /** The reason why the place cannot be judged. */
  unknown?: string;
}

/** A place whose model predicts values that are not finite cannot be judged, and JSON has no such errors. */
export function withFiniteErrors(place: MeasuredPlace): MeasuredPlace {
  const date = [...place.known, ...place.fresh].find(({ error }) => !Number.isFinite(error));
  if (!date) return place;
  return {
    ...place,
    ...{ known: [], fresh: [] },
    unknown: `the predictions of the model for ${date.datetime} are not finite: train it again`,
  };
}

const DATE_ERRORS = listOf(
  objectOf({ datetime: TEXT, error: NUMBER, patches: COUNT }, { trained: { const: true } }),
);

/** JSON Schema of a `MeasuredPlace`. */
export const MEASURED_PLACE = objectOf(
  {
    collection: TEXT,
    grid: TEXT,
    geocode: TEXT,
    model: TEXT,
    known: DATE_ERRORS,
    fresh: DATE_ERRORS,
    pixels: NUMBER,
    seconds: NUMBER,
  },
  { version: TEXT, unknown: TEXT, passes: NUMBER },
);

interface Place {
  collection: string;
  geocode: string;
}

export const comparePlaces = (a: Place, b: Place): number =>
  compareText(a.collection, b.collection) || compareText(a.geocode, b.geocode);

/** A place that is not trained again, and the reason. */
export interface LeftOut {
  collection: string;
  geocode: string;
  reason: string;
  /** True if its model has drifted, but the budget is too small. */
  drifted?: true;
  /** For such a place: its training takes about so many seconds, and the smallest budget that surely includes it. */
  seconds?: number;
  budget?: number;
}

/** Training never takes no time; models of older versions may say so. */
const MIN_TRAINING_SECONDS = 0.01;

/** Squared error that the training is expected to remove: the increase of the error, over all pixels of the place. */
function expectedGain({ error = 0, promised = 0, pixels }: PlaceFreshness): number {
  return Math.max(0, error - promised) * pixels;
}

interface StaleChoice {
  chosen: PlaceFreshness[];
  /** Those that the budget excludes come first, in the order in which a larger budget would include them. */
  leftOut: LeftOut[];
  /** Estimated duration of the trainings of the chosen places. */
  seconds: number;
}

/**
 * Returns the drifted places in the order of their gain for each second of training, as many as fit into `budget` seconds, and the reasons
 * why the others are left out. A place that does not fit does not exclude a cheaper one after it. The result does not depend on the order
 * of the places. `passes`: those that a new training takes over the patches of a place. A training is estimated to take the seconds of
 * the last one, times the ratio of the passes.
 */
export function chooseStale(
  places: readonly PlaceFreshness[],
  budget = Infinity,
  passes?: number,
): StaleChoice {
  const leftOut: LeftOut[] = [];
  const leave = ({ collection, geocode }: PlaceFreshness, reason: string, more: Partial<LeftOut> = {}) =>
    leftOut.push({ collection, geocode, reason, ...more });
  const cost = ({ seconds, passes: last }: PlaceFreshness) =>
    Math.max(MIN_TRAINING_SECONDS, passes && last ? (seconds * passes) / last : seconds);
  const value = (place: PlaceFreshness) => expectedGain(place) / cost(place);
  const drifted: PlaceFreshness[] = [];
  for (const place of places) {
    if (place.status === 'drifted' && expectedGain(place) > 0) drifted.push(place);
    else if (place.status === 'drifted')
      leave(place, 'the error of the last date is not larger than promised');
    else leave(place, place.status === 'fresh' ? 'the model is fresh' : `unknown: ${place.reason}`);
  }
  drifted.sort((a, b) => value(b) - value(a) || comparePlaces(a, b));
  const chosen: PlaceFreshness[] = [];
  let [used, needed] = [0, 0];
  for (const place of drifted) {
    const seconds = cost(place);
    needed += seconds;
    if (used + seconds <= budget) {
      chosen.push(place);
      used += seconds;
      continue;
    }
    const enough = Math.ceil(10 * needed) / 10;
    leave(
      place,
      `its training takes about ${seconds.toFixed(1)} s, and ${(budget - used).toFixed(1)} s of the budget of ${budget} s were left for it; a budget of ${enough} s includes it`,
      { drifted: true, seconds, budget: enough },
    );
  }
  leftOut.sort(
    (a, b) => (a.budget ?? Number.MAX_VALUE) - (b.budget ?? Number.MAX_VALUE) || comparePlaces(a, b),
  );
  return { chosen, leftOut, seconds: used };
}
