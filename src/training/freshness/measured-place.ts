/** Measurements of a place, from which it is decided if the model of the place is still valid. */
import type { GridName } from '../../grid/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import type { DateError } from '../evaluation/index.js';

export interface CheckedPlace {
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

const ERRORS = listOf(objectOf({ datetime: TEXT, error: NUMBER, patches: COUNT }));

/** JSON Schema of a `MeasuredPlace`. */
export const MEASURED_PLACE = objectOf(
  {
    collection: TEXT,
    grid: TEXT,
    geocode: TEXT,
    model: TEXT,
    known: ERRORS,
    fresh: ERRORS,
    pixels: NUMBER,
    seconds: NUMBER,
  },
  { version: TEXT, unknown: TEXT, passes: NUMBER },
);
