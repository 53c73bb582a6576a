/** Opens rasters, and lists those of files that hold several. The content, not the name, decides the format. */
import { TilewrightError } from '../errors.js';
import { pixelToMap } from './crs/crs.js';
import {
  noCrs,
  notTiff,
  rasterUnreadable,
  subdatasetNotFound,
  subdatasetNotNamed,
  unsupported,
} from './errors.js';
import { openEnvi, openEnviImage } from './formats/envi-header.js';
import { listGdalSubdatasets, openViaGdal } from './formats/gdal.js';
import { listHdf5Subdatasets, openHdf5 } from './formats/hdf5.js';
import { openMat } from './formats/mat.js';
import { openExternalMask, readTiffHeader } from './formats/tiff-header.js';
import {
  bandTagsWithPam,
  type GeoreferencingOverride,
  nodataOfPam,
  otherPlace,
  type Pam,
  readPam,
} from './metadata.js';
import type { MultiDatasetFile, RasterHeader } from './raster.js';
import {
  type ByteReader,
  describeSignature,
  detectFileType,
  type RasterType,
  type SourceFile,
  withFile,
  withFilePart,
} from './source.js';

/**
 * Reads the header of a raster, with its mask (internal, or in a file of the same name and `.msk`) and with GDAL's `.aux.xml`
 * beside it. `layer` names one raster of a file that holds several (`listSubdatasets` lists them). `position` replaces the
 * georeferencing of the file, except in HDF5. Throws TW_RASTER_UNREADABLE, _NOT_TIFF, _TRUNCATED, _SIZE_DIFFERS, _CORRUPT,
 * _UNSUPPORTED, _NO_CRS, _UNKNOWN_CRS and _NO_LAYER, and for formats that GDAL reads TW_RASTER_NO_GDAL, _GDAL_FAILED and
 * _GDAL_TIMEOUT.
 */
export async function openRaster(
  path: string,
  layer?: string,
  position?: GeoreferencingOverride,
): Promise<RasterHeader> {
  return withLatitudes(await openWithSideFiles(path, layer, position));
}

/** One of the images that a tile file holds side by side, each a complete TIFF with its masks and overviews. */
export interface ImageFile {
  path: string;
  /** First byte of the image in the file. */
  start: number;
  bytes: number;
}

/** Identifies an image. */
export const imageKey = ({ path, start }: ImageFile) => `${path}\n${start}`;

/** The name by which GDAL opens an image: of the first one, the path of its file. */
export const gdalName = ({ path, start, bytes }: ImageFile) =>
  start === 0 ? path : `/vsisubfile/${start}_${bytes},${path}`;

/** Reads the header of an image of a tile file. Throws the errors of `openRaster`. */
export function openImage({ path, start, bytes }: ImageFile): Promise<RasterHeader> {
  return withFilePart(path, [start, start + bytes], async (part) =>
    shiftBlocks(await readTiffHeader(part), start),
  );
}

/** The header of a TIFF that begins at a byte of its file. */
function shiftBlocks(header: RasterHeader, start: number): RasterHeader {
  const { blocks, mask } = header;
  if (blocks.reader !== 'tiff' || start === 0) return header;
  const offsets = Float64Array.from(blocks.offsets, (offset) => (offset === 0 ? 0 : offset + start));
  return {
    ...header,
    blocks: { ...blocks, offsets, directory: blocks.directory + start },
    ...(mask && { mask: shiftBlocks(mask, start) }),
  };
}

/** Throws TW_RASTER_NO_CRS if longitudes and latitudes reach more than a pixel beyond a pole. Cells whose centre is the pole may. */
function withLatitudes(header: RasterHeader): RasterHeader {
  const { crs, transform, width, height, path } = header;
  if (!crs.geographic) return header;
  const corners = [0, width].flatMap((column) =>
    [0, height].map((row) => pixelToMap(transform, column, row)[1]),
  );
  const farthest = corners.reduce((most, lat) => (Math.abs(lat) > Math.abs(most) ? lat : most));
  if (Math.abs(farthest) > 90 + Math.abs(transform.yx) + Math.abs(transform.yy))
    throw noCrs(path, `its pixels reach latitude ${Number(farthest.toPrecision(6))}, beyond the pole`);
  return header;
}

async function openWithSideFiles(
  path: string,
  layer?: string,
  position?: GeoreferencingOverride,
): Promise<RasterHeader> {
  let warnings: string[] = [];
  let pam = await readPam(path, warnings);
  // A file of several layers has neither a mask nor PAM for one of them.
  if (layer !== undefined) {
    const header = await openWithoutExternalMask(path, layer, position);
    if (!pam?.isScaled) return header;
    const warning = `scale and offset in ${pam.path} are not read for layers (--scale and --offset set them)`;
    return { ...header, warnings: [...(header.warnings ?? []), warning] };
  }
  const header = await openWithoutExternalMask(path, layer, position, pam).catch((error) => {
    throw noCrs.is(error) ? withWarnings(error, warnings) : error;
  });
  // `path` may be that of an ENVI header. The files beside the image count.
  if (header.path !== path) {
    warnings = [];
    pam = await readPam(header.path, warnings);
  }
  const mask = header.mask ?? (await openExternalMask(header, warnings));
  const nodata = nodataWithPam(header, pam, warnings);
  const place = pam && !position && prefersPam(header) ? otherPlace(pam, header, warnings) : {};
  const bandTags = pam ? bandTagsWithPam(header.bandTags, pam, warnings) : header.bandTags;
  return {
    ...header,
    ...place,
    nodata,
    bandTags,
    warnings: [...(header.warnings ?? []), ...warnings],
    ...(mask && { mask: { ...mask, ...place } }),
  };
}

/** True if GDAL prefers PAM to the position and nodata value of the file itself. */
const prefersPam = ({ blocks }: RasterHeader) =>
  blocks.reader === 'tiff' || (blocks.reader === 'gdal' && blocks.driver === 'JP2OpenJPEG');

function nodataWithPam(header: RasterHeader, pam: Pam | undefined, warnings: string[]): number | undefined {
  const own = header.nodata;
  if (!pam || (own !== undefined && !prefersPam(header))) return own;
  const other = nodataOfPam(pam, header, warnings);
  if (own !== undefined && other !== undefined && !Object.is(own, other))
    warnings.push(`its nodata value is ${other}, that of ${pam.path}, as in GDAL, and not its own ${own}`);
  return other ?? own;
}

/** An unused PAM file may be the reason why a raster has no position. */
function withWarnings(error: TilewrightError, warnings: string[]): TilewrightError {
  const { code, status, message } = error;
  return new TilewrightError(code, status, [message, ...warnings.map((warning) => `${warning}.`)].join(' '), {
    cause: error,
  });
}

/** The header without external masks. `pam` supplies georeferencing that the file lacks. */
async function openWithoutExternalMask(
  path: string,
  layer?: string,
  position?: GeoreferencingOverride,
  pam?: Pam,
): Promise<RasterHeader> {
  const opened = await withFile(path, async (file) => {
    const kind = rasterTypeOfFile(file);
    return kind === 'tiff' && layer === undefined ? readTiffHeader(file, position, pam) : kind;
  }).catch(async (error) => {
    // `path` may be the image of an ENVI header, which is raw numbers.
    const image = notTiff.is(error)
      ? await withReadErrors(path, () => openEnviImage(path, position))
      : undefined;
    if (!image) throw error;
    return image;
  });
  if (typeof opened !== 'string') return opened;
  switch (opened) {
    case 'tiff':
      throw subdatasetNotFound(path, layer ?? '', []);
    case 'envi':
      return withReadErrors(path, () => openEnvi(path, { position }));
    case 'mat':
      return openMat(path, layer, position);
    case 'hdf5':
      if (layer === undefined) throw await subdatasetRequired(path);
      return openHdf5(path, layer);
    default:
      return openViaGdal(path, opened, { layer, position, pam });
  }
}

async function withReadErrors<T>(path: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw rasterUnreadable.because(error, path, error);
  }
}

async function subdatasetRequired(path: string): Promise<TilewrightError> {
  const { subdatasets } = await listHdf5Subdatasets(path);
  if (subdatasets.length === 0)
    return unsupported(path, 'it has no numeric dataset with rows and columns', 'Choose another file.');
  return subdatasetNotNamed(
    path,
    subdatasets.map(({ name }) => name),
  );
}

/** Detects the type of a file by its first bytes. Throws TW_RASTER_UNREADABLE and TW_RASTER_NOT_TIFF. */
function detectRasterType(path: string): Promise<RasterType> {
  return withFile(path, async (file) => rasterTypeOfFile(file));
}

/** Names of raw images, which cannot be read without a header. */
const RAW_IMAGE = /\.(bil|bip|bsq)$/i;
const ENVI_ADVICE =
  'An ENVI image needs its header, of the same name and with .hdr, beside it; send both in a zip.';

/**
 * Reads the header of a TIFF through a reader of its bytes, with a mask in the same file. Throws TW_RASTER_NOT_TIFF for other formats, and
 * the errors of `openRaster`.
 */
export async function readTiffFrom(file: SourceFile<ByteReader>): Promise<RasterHeader> {
  if (detectFileType(file.start) === 'tiff') return withLatitudes(await readTiffHeader(file));
  const { found, advice } = describeSignature(file.start);
  throw notTiff(file.path, found, advice);
}

function rasterTypeOfFile({ path, start }: SourceFile): RasterType {
  const kind = detectFileType(start);
  if (kind !== null && kind !== 'zip' && kind !== 'gzip' && kind !== 'tar') return kind;
  const { found, advice } = describeSignature(start);
  throw notTiff(path, found, RAW_IMAGE.test(path) ? ENVI_ADVICE : advice);
}

/**
 * Lists the layers of an HDF4, HDF5 or netCDF file; `openRaster(path, layer.name)` opens one of them. Throws the errors of
 * `openRaster`, and TW_RASTER_UNSUPPORTED for files of a single raster.
 */
export async function listSubdatasets(path: string): Promise<MultiDatasetFile> {
  const kind = await detectRasterType(path);
  if (kind === 'hdf4' || kind === 'netcdf') return listGdalSubdatasets(path, kind);
  if (kind === 'hdf5') return listHdf5Subdatasets(path);
  throw unsupported(path, 'it is of a format that holds a single raster', 'Leave out the name of the layer.');
}
