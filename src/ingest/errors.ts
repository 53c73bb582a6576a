/** Errors of ingest: of inputs and options, of products, archives, clouds, and parts of scenes. */

import { defineError, messageOf } from '../errors.js';

export const notRecognised = defineError(
  'TW_INGEST_NOT_RECOGNISED',
  400,
  'No product format fits the input. Give a raster file, an archive, or the folder of a product as it was delivered.',
  (path: string, reason: string) =>
    `${path}: ${reason}. Give a raster file, an archive, or the folder of a product as it was delivered.`,
);

export const catalogAsFile = defineError(
  'TW_INGEST_CATALOG',
  400,
  'The address of a STAC API, catalog or Item was named as if it was a raster. Name it with `--from-stac` (`stac.url` over HTTP).',
  (url: string) =>
    `${url} is a JSON document and not a raster; for a STAC API, catalog or Item, use --from-stac ${url}`,
);

/** A reason for `notRecognised`. */
export const NOTHING_THERE = 'this file or folder does not exist';

export const missingBand = defineError(
  'TW_INGEST_MISSING_BAND',
  400,
  'None of the bands that the product lists has its file, or the flags name a band that the file does not have.',
  (path: string, band: string, hint: string) => `${path}: band ${band} is missing. ${hint}`,
);

export const missingMetadata = defineError(
  'TW_INGEST_MISSING_METADATA',
  400,
  'The folder is that of a product whose metadata file is missing. Download the product again, or add the file.',
  (path: string, file: string, facts: string) =>
    `${path}: the product has no ${file}, which states ${facts} of its numbers. Download the product again, or add the file.`,
);

export const noDatetime = defineError(
  'TW_INGEST_NO_DATETIME',
  400,
  'Neither the file nor the flags contain the acquisition time, or only its name does, with several dates.',
  (path: string, dates: string[] = [], others: string[] = []) => {
    const which = dates.length > 0 ? `, and its name holds ${dates.join(' and ')}` : '';
    return `${path}: the file does not say when it was taken${which}. Add --datetime 2024-06-01T10:30:00Z.${lackingText(others)}`;
  },
);

const lackingText = (facts: string[]) => (facts.length > 0 ? ` It also lacks ${facts.join(', and ')}.` : '');

export const collectionNotNamed = defineError(
  'TW_INGEST_NO_COLLECTION',
  400,
  'A raster that is not a known product needs the name of its collection.',
  (path: string, others: string[] = []) =>
    `${path}: not a known product, so its collection must be named. Add --collection my-collection.${lackingText(others)}`,
);

export const partOfProduct = defineError(
  'TW_INGEST_PART_OF_PRODUCT',
  400,
  'The file is one of several of a product. Ingest the folder of the product, or put the file into a separate collection with --collection.',
  (path: string, product: string, folder: string) =>
    `${path} is part of a product (${product}): ingest its folder ${folder}, or add --collection my-collection.`,
);

export const badOption = defineError(
  'TW_INGEST_BAD_OPTION',
  400,
  'A flag that describes the input has a value that cannot be used.',
  (option: string, value: string, expected: string) =>
    `${option} ${value} cannot be used: expected ${expected}`,
);

export const badNamePattern = defineError(
  'TW_INGEST_BAD_PATTERN',
  400,
  'The pattern of `--name-pattern` cannot be read: a field or a directive is not known, occurs twice, or is missing. The message lists the valid ones.',
  (pattern: string, reason: string) => `--name-pattern ${pattern} cannot be used: ${reason}`,
);

export const nameMismatch = defineError(
  'TW_INGEST_NAME_MISMATCH',
  400,
  'The name of a file, or of every raster file of a folder, does not fit the pattern of `--name-pattern`. Correct the pattern, or leave the file out.',
  (path: string, reason: string) => `${path} does not fit --name-pattern: ${reason}`,
);

export const bandTwice = defineError(
  'TW_INGEST_BAND_TWICE',
  400,
  'By `--name-pattern`, two files hold the same band of the same scene, so that one would replace the other. Name the part in which they differ.',
  (path: string, other: string, band: string | undefined) =>
    `${path} and ${other} are the same scene by --name-pattern${band === undefined ? ', which has no {band}' : `, and both hold its band ${band}`}. Replace {*} by a field or by text, so that the names differ in it.`,
);

export const badScale = defineError(
  'TW_INGEST_BAD_SCALE',
  400,
  'Scale and offset map all values of a band to one value, or to no number. Set them with `--scale` and `--offset`.',
  (path: string, band: string, scale: number, offset: number) =>
    `${path}: stored * ${scale} + ${offset} maps all values of band ${band} to one value, or to no number. Set the right --scale and --offset.`,
);

export const bandsDiffer = defineError(
  'TW_INGEST_BANDS_DIFFER',
  400,
  'Bands of one scene have different projections, or bands of one pixel size cover different areas.',
  (path: string, other: string) =>
    `${path} and ${other} belong to one scene, but have different projections, or pixels of one size with different position or extent. Bring both to one grid with gdalwarp.`,
);

export const badPixelSize = defineError(
  'TW_INGEST_PIXEL_SIZE',
  400,
  'The pixels of a raster are smaller than 1 mm or larger than 1100 km on the ground, so its georeference is wrong. Set the right one with `gdal_edit.py -a_ullr` or `gdal_translate -a_ullr`.',
  (path: string, x: number, y: number) =>
    `${path}: its pixels are ${Number(x.toPrecision(3))} x ${Number(y.toPrecision(3))} in units of its projection, which is not between 1 mm and 1100 km on the ground. Its georeference is wrong: set the right one with gdal_translate -a_ullr.`,
);

export const noValidPixels = defineError(
  'TW_INGEST_NO_VALID_PIXELS',
  400,
  'Every pixel of every band is nodata, so there is nothing to store.',
  (path: string) => `${path}: no band holds a valid pixel. Check the file, or the nodata value (--nodata).`,
);

export const outsideRegion = defineError(
  'TW_INGEST_OUTSIDE_REGION',
  400,
  'The scene has no valid pixel in the region of `--bbox`. The scene is left out.',
  (path: string) => `${path}: it has no valid pixel in the region of --bbox`,
);

export const tooManyTiles = defineError(
  'TW_INGEST_TOO_MANY_TILES',
  400,
  'The precision would cut the scene into more tiles than one scene may have.',
  (path: string, tiles: number, limit: number, precision: number) =>
    `${path}: precision ${precision} would make about ${tiles} tiles, at most ${limit} are allowed. Use a lower --precision.`,
);

export const rowsExceedMemory = defineError(
  'TW_INGEST_TOO_LARGE',
  400,
  'One row of tiles needs more source pixels in memory than the limit allows.',
  (path: string, needed: number, limit: number) =>
    `${path}: one row of tiles needs ${(needed / 1e6).toFixed(1)} MB of source pixels, the limit is ${(limit / 1e6).toFixed(1)} MB. Use a higher --precision or more --memory.`,
);

export const ingestFailed = defineError(
  'TW_INGEST_FAILED',
  500,
  'A scene failed with an error without a code; the message has the details. The other scenes continue.',
  (path: string, detail: string) => `${path}: ${detail}`,
);

const MAX_REASONS_IN_ERROR = 3;
/** Inputs with the same reason. */
const MAX_OTHERS_IN_ERROR = 2;

export const allInputsFailed = defineError(
  'TW_INGEST_ALL_FAILED',
  422,
  'All inputs failed. The results of the job list the reasons; a failure with the code `TW_DHT_OUTCOME_UNKNOWN` may have been ingested.',
  (groups: { path: string; message: string }[][]) => {
    const failed = groups.reduce((sum, group) => sum + group.length, 0);
    const reasons = groups.slice(0, MAX_REASONS_IN_ERROR).map(([first, ...others]) => {
      const more =
        others.length > MAX_OTHERS_IN_ERROR ? ` and ${others.length - MAX_OTHERS_IN_ERROR} more` : '';
      const paths = others.slice(0, MAX_OTHERS_IN_ERROR).map(({ path }) => path);
      return `${first?.message}${others.length > 0 ? ` (also ${paths.join(', ')}${more})` : ''}`;
    });
    const rest = groups.slice(MAX_REASONS_IN_ERROR).flat().length;
    const more = rest > 0 ? `; and ${rest} more` : '';
    return `${failed === 1 ? 'the only input' : `all ${failed} inputs`} failed: ${reasons.join('; ')}${more}`;
  },
);

export const duplicateScene = defineError(
  'TW_INGEST_SCENE_TWICE',
  409,
  'Two inputs of one ingest have the same scene id, so that one would replace the other. Ingest them one at a time with --id.',
  (path: string, other: string, id: string) =>
    `${path} has the same scene id ${id} as ${other}; ingest it by itself with another --id`,
);

export const tileTooLarge = defineError(
  'TW_INGEST_TILE_TOO_LARGE',
  400,
  'One tile would need more pixels than can be cut at once. Use a higher precision, so that tiles get smaller.',
  (path: string, geocode: string, width: number, height: number) =>
    `${path}: the tile ${geocode} would be ${width} x ${height} pixels; use a higher --precision. A collection keeps the precision of its first scene: if it has scenes, name another --collection (with --from-stac: --into) as well`,
);

export const badSidecar = defineError(
  'TW_INGEST_BAD_SIDECAR',
  400,
  'A STAC Item beside a raster cannot be read, or has invalid values. Correct it or remove it.',
  (path: string, what: string) => `${path} cannot be used as a STAC Item: ${what}. Correct it or remove it.`,
);

export const subdatasetNotKnown = defineError(
  'TW_INGEST_MANY_LAYERS',
  400,
  'A file of several layers (HDF, netCDF) is not a known product. Extract the layers with gdal_translate and ingest these.',
  (path: string, layers: string) =>
    `${path} is not a known product. It holds ${layers}. Extract one with gdal_translate (gdalinfo lists their names), and ingest it with --collection.`,
);

export const badCloudBands = defineError(
  'TW_INGEST_BAD_CLOUD_BANDS',
  500,
  'A band for the cloud detection has the wrong number of pixels.',
  (name: string, pixels: number, expected: number) =>
    `the cloud detection received ${pixels} pixels of ${name} instead of ${expected}`,
);

export const badCloudModel = defineError(
  'TW_INGEST_BAD_CLOUD_MODEL',
  400,
  'The cloud model is not a LightGBM text file (Booster.save_model) of a supported kind: binary objective, numerical splits.',
  (path: string, reason: string) => `${path}: ${reason}. Give a text file as Booster.save_model writes it.`,
);

export const cloudModelUnreadable = defineError(
  'TW_INGEST_CLOUD_MODEL_UNREADABLE',
  500,
  'The file that `--cloud-model` names cannot be read. Check the path and its permissions.',
  (path: string, cause: unknown) => `the cloud model ${path} cannot be read: ${messageOf(cause)}`,
);

export const badMetadata = defineError(
  'TW_INGEST_BAD_METADATA',
  400,
  'A metadata file of the product cannot be read, or lacks what the product needs. Fetch the product again.',
  (path: string, reason: string) =>
    `${path}: the metadata cannot be used: ${reason}. Fetch the product again.`,
);

export const archiveUnknown = defineError(
  'TW_INGEST_ARCHIVE_UNKNOWN',
  400,
  'The file is not an archive of a known kind. Known are zip, tar, tar.gz, and a raster file compressed by gzip.',
  (path: string) => `${path} is not a zip, tar, tar.gz or gzip file`,
);

export const archiveBroken = defineError(
  'TW_INGEST_ARCHIVE_BROKEN',
  400,
  'The archive is truncated, damaged or of an unsupported kind. Fetch it again.',
  (path: string, detail: string) => `${path} cannot be unpacked: ${detail}`,
);

export const archiveName = defineError(
  'TW_INGEST_ARCHIVE_NAME',
  400,
  'An entry of the archive has a name that could lead out of the folder it is unpacked into, or that is too long. The entire archive is refused.',
  (path: string, entry: string, reason: string) =>
    `${path}: the entry ${JSON.stringify(entry.slice(0, 200))} is refused: ${reason}`,
);

export const archiveLink = defineError(
  'TW_INGEST_ARCHIVE_LINK',
  400,
  'An entry of the archive is a link, a device or something else that is neither a file nor a folder. The entire archive is refused.',
  (path: string, entry: string, kind: string) =>
    `${path}: the entry ${JSON.stringify(entry.slice(0, 200))} is a ${kind}; only files and folders are unpacked`,
);

export const archiveTwice = defineError(
  'TW_INGEST_ARCHIVE_TWICE',
  400,
  'Two entries of the archive have the same name, so that one would replace the other.',
  (path: string, entry: string) =>
    `${path}: the entry ${JSON.stringify(entry.slice(0, 200))} occurs twice, or both as a file and as a folder`,
);

export const archiveEncrypted = defineError(
  'TW_INGEST_ARCHIVE_ENCRYPTED',
  400,
  'The archive needs a password. Unpack it first.',
  (path: string, entry: string) =>
    `${path}: the entry ${JSON.stringify(entry.slice(0, 200))} is encrypted; unpack the archive first`,
);

export const archiveTooLarge = defineError(
  'TW_INGEST_ARCHIVE_TOO_LARGE',
  413,
  'The archive holds more than may be unpacked: too many bytes, too many entries, or far more bytes than its compressed size explains. Unpack it first if you trust it.',
  (path: string, reason: string) => `${path} is not unpacked: ${reason}`,
);

export const noGeographicExtent = defineError(
  'TW_INGEST_OFF_EARTH',
  400,
  'No pixel of the raster is on the Earth, so its position or its projection is wrong.',
  (path: string) =>
    `${path}: none of its pixels is on the Earth. Correct its position and projection, for example with gdal_edit.`,
);

export const outsideGrid = defineError(
  'TW_INGEST_OUTSIDE_GRID',
  400,
  'The entire scene lies outside of the grid: quadtile ends at 85.0511 degrees of latitude.',
  (path: string, grid: string) =>
    `${path}: it lies completely beyond the ${grid} grid. Put it into a collection with --grid geohash.`,
);

export const pathNotAllowed = defineError(
  'TW_INGEST_OUTSIDE',
  403,
  'An input of a server leads out of the folders of `--allow-folder`, holds a link, or was changed while it was read. Put complete regular files there before you name them.',
  (path: string, entry?: string) =>
    entry !== undefined
      ? `${path} cannot be read, because ${entry} beside or below it is a link, not a regular file, or too deep; put regular files there first`
      : `${path} is missing, is or holds a link, leads out of the folders that may be read, or was changed while it was read; put regular files there first`,
);

export const missingAsset = defineError(
  'TW_INGEST_MISSING_ASSET',
  400,
  'A STAC Item has no GeoTIFF of a name that `--bands` requests. The message lists the keys of its GeoTIFFs.',
  (url: string, item: string, name: string, keys: string[]) =>
    `${item} (${url}) has no GeoTIFF named ${name}; it has ${listOf(keys)}`,
);

/** Keys that an archive chooses, of which there can be many long ones. */
const listOf = (keys: string[]): string =>
  keys
    .slice(0, 40)
    .map((key) => key.slice(0, 60))
    .join(', ') || 'none';

export const tooManyAssets = defineError(
  'TW_INGEST_TOO_MANY_ASSETS',
  400,
  'A STAC Item has more GeoTIFFs than are read without being asked for. Name those to read with `--bands`.',
  (url: string, item: string, count: number, most: number) =>
    `${item} (${url}) has ${count} files with data, and at most ${most} are read; name some of them with --bands`,
);

export const noReadableAsset = defineError(
  'TW_INGEST_NO_READABLE_ASSET',
  400,
  'None of the assets of a STAC Item is a GeoTIFF with data that can be read over HTTP. Download the scene, and ingest it from the disk.',
  (url: string, item: string) =>
    `${item} (${url}) has no asset that is a GeoTIFF with data; download the scene, and ingest it from the disk`,
);

export const scenePartDiffers = defineError(
  'TW_INGEST_PART_DIFFERS',
  409,
  'A node of the cluster reads a scene differently from the node that ingests it: the files have changed, or the nodes have different versions of the program or different cloud models. The node that ingests the scene makes all of its tiles.',
  (name: string) =>
    `${name}: this node reads it differently; run the same version with the same --cloud-model on all nodes`,
);

export const scenePartStopped = defineError(
  'TW_INGEST_PART_STOPPED',
  503,
  'A node of the cluster stops while it reads cells of a scene for another node. The node that ingests the scene reads these cells.',
  () => 'it is stopping and reads no more cells for other nodes',
);
