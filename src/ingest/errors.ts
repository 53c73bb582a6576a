import { defineError } from '../errors.js';

export const notRecognised = defineError(
  'TW_INGEST_NOT_RECOGNISED',
  400,
  'No product format fits the input. Give a GeoTIFF file or a Landsat product folder.',
  (path: string, reason: string) =>
    `${path}: ${reason}. Give a GeoTIFF file or a folder as Landsat delivers it.`,
);

export const missingBand = defineError(
  'TW_INGEST_MISSING_BAND',
  400,
  'The product lists a band whose file is not there, or the flags name a band that the file does not have.',
  (path: string, band: string, hint: string) => `${path}: band ${band} is missing. ${hint}`,
);

export const noDatetime = defineError(
  'TW_INGEST_NO_DATETIME',
  400,
  'Neither the file nor the flags say when the scene was taken.',
  (path: string) => `${path}: the file does not say when it was taken. Add --datetime 2024-06-01T10:30:00Z.`,
);

export const noCollection = defineError(
  'TW_INGEST_NO_COLLECTION',
  400,
  'A raster that is not a known product needs the name of its collection.',
  (path: string) =>
    `${path}: not a known product, so its collection must be named. Add --collection my-collection.`,
);

export const badOption = defineError(
  'TW_INGEST_BAD_OPTION',
  400,
  'A flag that describes the input has a value that cannot be used.',
  (option: string, value: string, expected: string) =>
    `${option} ${value} cannot be used: expected ${expected}`,
);

export const bandsDiffer = defineError(
  'TW_INGEST_BANDS_DIFFER',
  400,
  'Bands of one pixel size lie at different places or in different projections.',
  (path: string, other: string) =>
    `${path} has the same pixel size as ${other} but another position, size or projection. Bring both to one grid with gdalwarp.`,
);

export const noValidPixels = defineError(
  'TW_INGEST_NO_VALID_PIXELS',
  400,
  'Every pixel of every band is nodata, so there is nothing to store.',
  (path: string) => `${path}: no band holds a valid pixel. Check the file, or the nodata value (--nodata).`,
);

export const tooManyTiles = defineError(
  'TW_INGEST_TOO_MANY_TILES',
  400,
  'The precision would cut the scene into more tiles than one scene may have.',
  (path: string, tiles: number, limit: number, precision: number) =>
    `${path}: precision ${precision} would make about ${tiles} tiles, at most ${limit} are allowed. Use a lower --precision.`,
);

export const tooLarge = defineError(
  'TW_INGEST_TOO_LARGE',
  400,
  'One row of tiles needs more source pixels in memory than the limit allows.',
  (path: string, needed: number, limit: number) =>
    `${path}: one row of tiles needs ${Math.ceil(needed / 1e6)} MB of source pixels, the limit is ${Math.floor(limit / 1e6)} MB. Use a higher --precision or more --memory.`,
);

export const ingestFailed = defineError(
  'TW_INGEST_FAILED',
  500,
  'A scene failed with an error that has no code of its own; its message says which. The other scenes go on.',
  (path: string, detail: string) => `${path}: ${detail}`,
);

export const sceneTwice = defineError(
  'TW_INGEST_SCENE_TWICE',
  409,
  'Two inputs of one ingest have the same scene id, so that one would replace the other. Name them with --id, one at a time.',
  (path: string, other: string, id: string) =>
    `${path} has the same scene id ${id} as ${other}; ingest it by itself with another --id`,
);

export const tileTooLarge = defineError(
  'TW_INGEST_TILE_TOO_LARGE',
  400,
  'One tile would need more pixels than can be cut at once. Use a higher precision, so that tiles get smaller.',
  (path: string, geocode: string, width: number, height: number) =>
    `${path}: the tile ${geocode} would be ${width} x ${height} pixels; use a higher --precision`,
);

export const offEarth = defineError(
  'TW_INGEST_OFF_EARTH',
  400,
  'No pixel of the raster is a place on Earth, so its position or its projection is wrong.',
  (path: string) =>
    `${path}: no pixel of it is a place on Earth. Correct its position and projection, as with gdal_edit.`,
);

export const outsideGrid = defineError(
  'TW_INGEST_OUTSIDE_GRID',
  400,
  'The whole scene lies where the grid has no cells: quadtile ends at 85.0511 degrees of latitude.',
  (path: string, grid: string) =>
    `${path}: all of it lies beyond the ${grid} grid. Put it into a collection with --grid geohash.`,
);
