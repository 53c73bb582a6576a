/** Documents other than STAC: scenes, models, maps, series, health. */

import { listOf } from '../../utils/json-schema.js';
import {
  boolean,
  count,
  links,
  mapOf,
  number,
  object,
  oneOf,
  orNull,
  partialProperties,
  ref,
  text,
  time,
} from './builders.js';
import { problem } from './stac.js';

/** An image from byte `start` on in a file. */
const imageFile = { path: text, start: count, bytes: count };

const scene = {
  id: text,
  collection: text,
  datetime: time,
  end_datetime: time,
  platform: orNull(text),
  tiles: count,
  warnings: listOf(text),
  committed: time,
};

const cell = { collection: text, grid: oneOf('geohash', 'quadtile'), geocode: text };

const model = {
  id: text,
  model: text,
  ...cell,
  version: text,
  createdAt: time,
};

/** A version of a model, as lists show it. */
const listedModel = {
  ...model,
  // Classifiers have no epochs.
  'epochs?': count,
  'classifier?': text,
  /** The mode of the training, and for the base of a region the number of its places. */
  'mode?': text,
  'places?': count,
  metrics: { type: 'object' },
  baseline: { type: 'object' },
  seconds: number,
  parent: orNull(text),
};

/** The versions that `latest` and `best` stand for. */
const versionSummary = { latest: text, best: text };

const value = orNull(number);

/** The values of one date: their origin, and the numbers of clear pixels with data and of all pixels. */
const dated = {
  datetime: time,
  'end_datetime?': time,
  collection: text,
  scenes: listOf(text),
  valid: count,
  pixels: count,
};

/** By dependency: disk, store, etcd. */
const checks = mapOf(oneOf('ok', 'unavailable'));

export const storeSchemas = {
  SceneSummary: object(scene),
  Scenes: object({ scenes: listOf(ref('SceneSummary')), ...links }),
  Scene: object({ ...scene, geocodes: listOf(text) }),
  Models: object({
    models: listOf(object({ ...listedModel, ...versionSummary, versions: count, ...links })),
    /** Ids of models of the page with a damaged record. */
    'damaged?': listOf(text),
    ...links,
  }),
  ModelVersions: object({ ...versionSummary, versions: listOf(object(listedModel)) }),
  Model: object({
    ...model,
    ...versionSummary,
    versions: count,
    ...links,
    files: listOf(object({ name: text, bytes: count, crc32: count })),
    card: { type: 'object' },
  }),
  SimilarPlaces: object({ place: ref('SimilarPlace'), similar: listOf(ref('SimilarPlace')) }),
  SimilarPlace: object({
    ...cell,
    tile: text,
    datetime: time,
    distance: number,
    'cluster?': count,
    ...links,
  }),
  /** `time` is in milliseconds since 1970; `band` is an index from 0; the physical value is stored value * scale + offset. */
  TrainingPlace: object({
    ...cell,
    tiles: text,
    dates: listOf(
      object({
        time: number,
        bands: mapOf(object({ ...imageFile, band: count, scale: number, offset: number })),
        mask: object(imageFile),
      }),
    ),
    'pairs?': listOf(object({ cloudy: count, clear: count, 'prior?': listOf(count) })),
    'validationFrom?': number,
  }),
  CheckedPlace: object({
    ...cell,
    skipped: listOf(object({ model: text, reason: text })),
  }),
  TileJson: object({
    tilejson: oneOf('3.0.0'),
    name: text,
    'attribution?': text,
    scheme: oneOf('xyz'),
    tiles: listOf(text),
    minzoom: count,
    maxzoom: count,
    bounds: { type: 'array', items: number, minItems: 4, maxItems: 4 },
    center: { type: 'array', items: number, minItems: 3, maxItems: 3 },
    'colour_scale?': object({ low: number, high: number, colours: listOf(text) }),
    ...partialProperties,
  }),
  Series: object({
    expression: text,
    geometry: { type: 'object' },
    series: listOf(
      object({
        ...dated,
        'value?': value,
        'mean?': value,
        'std?': value,
        'min?': value,
        'max?': value,
        'median?': value,
      }),
    ),
    skipped: count,
    ...partialProperties,
  }),
  Spectra: object({
    geometry: { type: 'object' },
    sensors: listOf(
      object({
        bands: listOf(object({ name: text, wavelength: number, 'fwhm?': number, 'bad_band?': boolean })),
      }),
    ),
    spectra: listOf(
      object({
        ...dated,
        sensor: count,
        'values?': listOf(value),
        'mean?': listOf(value),
        'std?': listOf(value),
      }),
    ),
    skipped: count,
    ...partialProperties,
  }),
  Ready: object({ status: oneOf('ready'), checks }),
  NotReady: object({ ...problem, checks }),
  Health: object({
    status: oneOf('ok'),
    'node?': text,
    'version?': text,
    'collections?': count,
    'scenes?': count,
    'tiles?': count,
    'models?': count,
    'sweepError?': orNull(text),
    'snapshotError?': orNull(text),
    'writeError?': orNull(text),
  }),
};
