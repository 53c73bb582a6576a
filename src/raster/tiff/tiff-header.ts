/** Reads the header of a GeoTIFF. */
import { isInvertible } from '../crs/index.js';
import { corrupt, noCrs, unsupported } from '../errors.js';
import {
  type ByteReader,
  type GeoreferencingOverride,
  georeferenceByCorners,
  requireSupportedSize,
  type SourceFile,
} from '../file-access/index.js';
import { type Pam, parseGdalMetadata, placeWithPam } from '../metadata/index.js';
import { DATA_TYPES, parseNodata } from '../pixels/index.js';
import type { Affine, DataType, RasterHeader } from '../raster-types.js';
import { type Ifd, readIfd } from './read-tiff-ifd.js';
import { blockLayout } from './tiff-block-layout.js';
import { crsFromGeoKeys, type GeoKeys, parseGeoKeys, pixelIsPoint } from './tiff-geo-keys.js';
import { findMaskImage } from './tiff-mask-image.js';
import { ALL_TAGS, TAG } from './tiff-tags.js';

/** PhotometricInterpretation of images with a colour table. */
const PALETTE_COLOUR = 3;

/**
 * Reads the header of a GeoTIFF. `position` replaces its georeferencing; `pam` supplies what it lacks. Throws
 * TW_RASTER_TRUNCATED, _CORRUPT, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function readTiffHeader(
  file: SourceFile<ByteReader>,
  position?: GeoreferencingOverride,
  pam?: Pam,
): Promise<RasterHeader> {
  const { path, size } = file;
  const directory = await readIfd(file, ALL_TAGS);
  const one = (tag: number, otherwise: number) => directory.numbers(tag)?.[0] ?? otherwise;
  const width = one(TAG.width, 0);
  const height = one(TAG.height, 0);
  const bands = one(TAG.samplesPerPixel, 1);
  if (!(width > 0 && height > 0 && bands > 0))
    throw corrupt(path, `its size is ${width} x ${height} x ${bands}`);
  requireSupportedSize(path, width, height, bands);
  const dataType = dataTypeOf(directory, path);
  const shape = { path, fileBytes: size, width, height, bands, dataType };
  const blocks = blockLayout(directory, 0, shape);
  const keys = parseGeoKeys(
    directory.numbers(TAG.geoKeys) ?? [],
    directory.numbers(TAG.geoDoubles) ?? [],
    directory.text(TAG.geoText) ?? '',
  );
  const palette = one(TAG.photometric, 1) === PALETTE_COLOUR;
  const colours = palette && dataType === 'uint8' ? directory.numbers(TAG.colourMap) : undefined;
  const { interpretations, warnings, ...described } = parseGdalMetadata(
    directory.text(TAG.gdalMetadata) ?? '',
    bands,
  );
  const alpha = findAlphaBand(directory, bands, interpretations);
  const mask = await findMaskImage(file, directory.next, shape, warnings);
  const place = position
    ? georeferenceByCorners(position, { path, width, height })
    : placeWithPam(
        { crs: () => crsFromGeoKeys(keys, path), transform: () => transformOf(directory, keys, path) },
        pam,
      );
  return {
    ...shape,
    ...place,
    nodata: parseNodata(directory.text(TAG.gdalNodata), dataType),
    palette,
    ...(colours?.length === 768 && { colours }),
    ...(alpha !== undefined && { alpha }),
    ...(mask && { mask: { ...mask, ...place } }),
    blocks,
    ...described,
    warnings,
    dateTime: directory.text(TAG.dateTime),
  };
}

function dataTypeOf(directory: Ifd, path: string): DataType {
  const bits = new Set(directory.numbers(TAG.bitsPerSample) ?? [1]);
  const formats = new Set(directory.numbers(TAG.sampleFormat) ?? [1]);
  if (bits.size > 1 || formats.size > 1) throw unsupported(path, 'its bands are of different data types');
  const [bit] = bits;
  const [format] = formats;
  // 4 is "undefined", which readers treat as unsigned.
  const name = `${{ 1: 'uint', 2: 'int', 3: 'float', 4: 'uint' }[format ?? 0]}${bit}`;
  const dataType = DATA_TYPES.find((known) => known === name);
  if (dataType) return dataType;
  const kind =
    { 1: 'unsigned', 2: 'signed', 3: 'floating point', 5: 'complex', 6: 'complex' }[format ?? 0] ?? 'unknown';
  throw unsupported(path, `its pixels are ${bit}-bit ${kind} numbers`);
}

/** ExtraSamples: associated alpha (premultiplied colours), or unassociated alpha. */
const ASSOCIATED_ALPHA = 1;
const UNASSOCIATED_ALPHA = 2;

/**
 * The band that GDAL treats as alpha: ExtraSamples describes the last samples of a pixel, and GDAL's own metadata takes
 * precedence.
 */
function findAlphaBand(
  directory: Ifd,
  bands: number,
  interpretations: (string | undefined)[],
): number | undefined {
  if (bands === 1) return undefined;
  const extra = directory.numbers(TAG.extraSamples) ?? new Float64Array();
  const isAlpha = (band: number) => {
    const noted = interpretations[band];
    if (noted !== undefined) return noted === 'alpha';
    const kind = extra[band - (bands - extra.length)];
    return kind === ASSOCIATED_ALPHA || kind === UNASSOCIATED_ALPHA;
  };
  const alpha = interpretations.findIndex((_, band) => isAlpha(band));
  return alpha === -1 ? undefined : alpha;
}

function transformOf(directory: Ifd, keys: GeoKeys, path: string): Affine {
  const corner = transformFromTiepoint(directory);
  if (!corner) {
    const points = (directory.numbers(TAG.tiepoints)?.length ?? 0) / 6;
    throw noCrs(
      path,
      points > 0 ? `it has ${points} control points but no pixel size` : 'it has no position',
    );
  }
  if (!isInvertible(corner)) throw noCrs(path, 'its pixels have no extent');
  if (!pixelIsPoint(keys)) return corner;
  return {
    ...corner,
    originX: corner.originX - 0.5 * (corner.xx + corner.xy),
    originY: corner.originY - 0.5 * (corner.yx + corner.yy),
  };
}

function transformFromTiepoint(directory: Ifd): Affine | undefined {
  const m = directory.numbers(TAG.transformation);
  if (m && m.length >= 8) return { originX: m[3], originY: m[7], xx: m[0], xy: m[1], yx: m[4], yy: m[5] };
  const scale = directory.numbers(TAG.pixelScale);
  const tie = directory.numbers(TAG.tiepoints);
  if (!scale || !tie || scale.length < 2 || tie.length < 6) return undefined;
  const xx = scale[0];
  // Rows run south. A negative scale is a known mistake of writers, and its sign is ignored, as in GDAL.
  const yy = -Math.abs(scale[1]);
  return { originX: tie[3] - tie[0] * xx, originY: tie[4] - tie[1] * yy, xx, xy: 0, yx: 0, yy };
}
