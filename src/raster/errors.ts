/** Errors of rasters: files that cannot be read, and images that cannot be written. */

import { defineError, messageOf } from '../errors.js';

/** The file cannot be opened. */
export const rasterUnreadable = defineError(
  'TW_RASTER_UNREADABLE',
  400,
  'A raster file is missing or may not be read. Check the path and its permissions.',
  (path: string, cause: unknown) =>
    `${path} cannot be read: ${messageOf(cause)}. Check that the file exists and that this process may read it.`,
);

/** The content is of no format that tilewright reads; the name of the file does not count. */
export const notTiff = defineError(
  'TW_RASTER_NOT_TIFF',
  415,
  'The content of a file is neither a TIFF nor another supported format. Use a GeoTIFF, or convert the file with gdal_translate.',
  (path: string, found: string, advice: string) => `${path} is not a supported raster: ${found}. ${advice}`,
);

/** The directory or the blocks of a TIFF lie beyond the end of the file. */
export const truncated = defineError(
  'TW_RASTER_TRUNCATED',
  422,
  'A raster file is shorter than its directory requires, for example after an incomplete download. Fetch the file again.',
  (path: string, what: string) => `${path} is truncated: ${what}. Fetch or write the file again.`,
);

/** The size of a raw image differs from its header. */
export const sizeMismatch = defineError(
  'TW_RASTER_SIZE_DIFFERS',
  422,
  'An ENVI header describes an image of another size than the file beside it has. Correct samples, lines, bands, data type or header offset in the header, or fetch the image again.',
  (path: string, described: string, expected: number, found: string) =>
    `${path} does not fit its header: ${described} are ${expected} bytes, ${found}. Correct the header, or fetch the image again.`,
);

/** The structure or the data of a TIFF contradict themselves. */
export const corrupt = defineError(
  'TW_RASTER_CORRUPT',
  422,
  'A raster file holds data that cannot be decoded. Fetch the file again, or check it with gdalinfo -checksum.',
  (
    path: string,
    what: string,
    advice = 'Fetch or write the file again; if GDAL reads it, convert it with gdal_translate.',
  ) => `${path} is corrupt: ${what}. ${advice}`,
);

/** A valid file of a kind that tilewright does not read. */
export const unsupported = defineError(
  'TW_RASTER_UNSUPPORTED',
  415,
  'A raster file uses an unsupported layout, data type or codec. The message has the command that converts it.',
  (path: string, what: string, advice = 'Convert it with gdal_translate -of COG IN OUT.tif.') =>
    `${path} cannot be used: ${what}. ${advice}`,
);

export const noCrs = defineError(
  'TW_RASTER_NO_CRS',
  422,
  'A raster has no georeferencing. Set it with `ingest --position`, or assign a coordinate system with gdal_edit.py -a_srs.',
  (
    path: string,
    what: string,
    advice = 'Set its position with --position at its ingest, or with gdal_translate -a_srs and -a_ullr.',
  ) => `${path} is not georeferenced: ${what}. ${advice}`,
);

export const unknownCrs = defineError(
  'TW_RASTER_UNKNOWN_CRS',
  422,
  'The coordinate system of a raster is not known. Reproject the file with gdalwarp -t_srs EPSG:4326 or to UTM.',
  (what: string) =>
    `the coordinate system ${what} is not known. Reproject the raster first: gdalwarp -t_srs EPSG:4326, or to its UTM zone.`,
);

export const notEarthEllipsoid = defineError(
  'TW_RASTER_NOT_EARTH',
  422,
  'A raster shows another planet or moon: its coordinate system does not have the radius of the Earth. Only rasters of the Earth are read.',
  (path: string, kilometres: number) =>
    `${path} does not show the Earth: the radius of its coordinate system is ${kilometres} km. Only rasters of the Earth are read; if this is one, correct its coordinate system with gdal_translate -a_srs.`,
);

/** The sizes of an image to be written contradict each other. */
export const invalidImage = defineError(
  'TW_RASTER_INVALID_IMAGE',
  500,
  'An image to be written does not fit its own description. This is a mistake of the calling code.',
  (what: string) => `the image cannot be written: ${what}`,
);

export const imageTooLarge = defineError(
  'TW_RASTER_TOO_LARGE',
  413,
  'An image does not fit into a classic TIFF of 4 GiB. Use a finer precision, so that tiles get smaller.',
  (bytes: number) =>
    `the image needs ${bytes} bytes, more than the 4 GiB of a classic TIFF. Use smaller cells (a higher precision).`,
);

export const windowOutside = defineError(
  'TW_RASTER_WINDOW_OUTSIDE',
  500,
  'Pixels or bands were requested that a raster does not have. This is a mistake of the calling code.',
  (path: string, what: string) => `${path} does not have ${what}`,
);

/** The advice for numbers that tilewright does not read: the data type of GDAL that holds them. */
export function convertTo(type: string, bits?: number): string {
  const packed = bits === undefined ? '' : ` -co NBITS=${bits}`;
  return `Convert it with gdal_translate -ot ${type}${packed} IN OUT.tif.`;
}

/** The format needs GDAL, which is not installed. */
export const noGdal = defineError(
  'TW_RASTER_NO_GDAL',
  501,
  'A file is of a format that is read through GDAL (JPEG 2000, HDF4, Erdas Imagine, netCDF), which is not installed. Install it: apt-get install gdal-bin.',
  (path: string, format: string, program: string) =>
    `${path} is ${format}, which is read through GDAL, and there is no ${program} on PATH. Install it: apt-get install gdal-bin`,
);

/** A GDAL process ended with an error, was killed from outside, or returned unexpected output. */
export const gdalFailed = defineError(
  'TW_RASTER_GDAL_FAILED',
  422,
  'GDAL could not read a file: the file is damaged or not supported by GDAL, or GDAL was killed. Fetch the file again, or check it with gdalinfo -checksum.',
  (path: string, program: string, what: string, stderr: string) =>
    `${path} cannot be read: ${program} ended with ${what}${stderr === '' ? '' : ` and said: ${stderr}`}. Fetch the file again, or check it with gdalinfo -checksum.`,
);

export const gdalTimeout = defineError(
  'TW_RASTER_GDAL_TIMEOUT',
  504,
  'GDAL took too long to read a file and was killed. Try again when the machine and its disks are less busy.',
  (path: string, program: string, after: string) =>
    `${path} cannot be read: ${program} was ended after ${after}. Try again when the machine and its disks are less busy.`,
);

export const subdatasetNotFound = defineError(
  'TW_RASTER_NO_LAYER',
  422,
  'A file has no layer of the given name. The message lists its layers.',
  (path: string, layer: string, layers: string[]) =>
    `${path} has no layer "${layer}". ${layers.length > 0 ? `It has: ${layers.join(', ')}` : 'It has no named layers'}.`,
);

export const subdatasetNotNamed = defineError(
  'TW_RASTER_SEVERAL_LAYERS',
  422,
  'A file holds several rasters and none was named. The message lists them.',
  (path: string, layers: string[]) =>
    `${path} holds several rasters; name one of them: ${layers.join(', ')}.`,
);
