/** Errors of maps, series and spectra. */
import { defineError } from '../errors.js';

export const badRenderParameter = defineError(
  'TW_IMAGERY_LOOK',
  400,
  'A render parameter of a map (assets, bidx, rescale, nodata, colormap, colormap_name, color_formula, algorithm, algorithm_params) cannot be used. The message names it.',
  (parameter: string, why: string) => `${parameter} ${why}`,
);

export const noMapTile = defineError(
  'TW_IMAGERY_NO_MAP_TILE',
  404,
  'The zoom, column or row of a map tile is outside of the map.',
  (z: string, x: string, y: string) =>
    `there is no map tile ${z}/${x}/${y}: zoom must be 0 to 24, column and row 0 to 2^zoom - 1. Add @2x to the row for 512 pixels`,
);

export const zoomTooLow = defineError(
  'TW_IMAGERY_ZOOM',
  400,
  'The zoom is below the minimum zoom of the collection, which depends on the size of its cells, not on their number: a map tile could show more than 256 of them. Zoom in; tilejson.json has the minimum zoom.',
  (collection: string, zoom: number, smallest: number) =>
    `zoom ${zoom} is below the minimum zoom of ${collection}, which depends on the size of its cells: zoom in to ${smallest} or more`,
);

export const tooManyValues = defineError(
  'TW_IMAGERY_TOO_MANY_VALUES',
  400,
  'An image would have too many values: its pixels times the number of bands and expressions. Request fewer pixels (a smaller `buffer`, no `@2x`), bands or expressions.',
  (width: number, height: number, bands: number, expressions: number, most: number) =>
    `${width} x ${height} pixels of ${bands} bands and ${expressions} expressions are more than ${most} values: request fewer pixels, bands or expressions`,
);

export const renderQueueFull = defineError(
  'TW_IMAGERY_BUSY',
  429,
  'Too many maps and previews are waiting to be rendered. Wait for the time in the header Retry-After.',
  (waiting: number) => `${waiting} maps and previews are already waiting to be rendered; try again later`,
);

export const badZone = defineError(
  'TW_IMAGERY_REGION',
  400,
  'A place is not a point or polygon in degrees. Give longitude,latitude or a GeoJSON Point, Polygon or MultiPolygon.',
  (why: string) =>
    `the place cannot be used: ${why}; give longitude,latitude or a GeoJSON Point, Polygon or MultiPolygon in degrees, also as the only Feature of a file`,
);

export const zoneTooLarge = defineError(
  'TW_IMAGERY_TOO_MUCH',
  413,
  'A series would read more tiles or pixels than one request may. Give a smaller place or a shorter time.',
  (what: string, most: number) =>
    `the series would read ${what}, more than ${most}: give a smaller place or a shorter time`,
);

export const tileUnreadable = defineError(
  'TW_IMAGERY_TILE_FILE',
  500,
  'A stored tile file cannot be read. `tilewright verify` lists all damaged files; ingest the scene again.',
  (path: string, cause: string) =>
    `${path} cannot be read: ${cause}; run "tilewright verify", then ingest the scenes again that it lists`,
);

export const changedWhileReading = defineError(
  'TW_IMAGERY_CHANGING',
  503,
  'The tiles of a series changed repeatedly while nodes of a cluster read them. Send the request again.',
  () => 'the tiles of the series changed repeatedly while they were read: send the request again',
);
