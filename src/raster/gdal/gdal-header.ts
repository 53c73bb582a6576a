/** The header of a raster that GDAL reads. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { gdalFailed, subdatasetNotFound, subdatasetNotNamed, unsupported } from '../errors.js';
import {
  type GeoreferencingOverride,
  georeferenceByCorners,
  MAX_BLOCK_BYTES,
  requireSupportedSize,
} from '../file-access/index.js';
import { type Pam, placeWithPam } from '../metadata/index.js';
import { bytesPerSample, DATA_TYPES, parseNodata } from '../pixels/index.js';
import type { BandTags, ColourTable, DataType, RasterHeader } from '../raster-types.js';
import { GDAL_FORMATS, type GdalFileType } from './gdal-drivers.js';
import { gdalCrs, gdalTransform } from './gdal-georeferencing.js';
import { subdatasetsOf } from './gdal-subdatasets.js';
import { type GdalBand, type GdalInfo, runGdalInfo } from './gdalinfo.js';

/**
 * Reads the header of a raster through GDAL. `layer` names one of several; a file of several needs it. `position` replaces its
 * georeferencing; `pam` supplies what a file of a single raster lacks. Throws TW_RASTER_NO_GDAL, _GDAL_FAILED, _GDAL_TIMEOUT,
 * _NO_LAYER, _SEVERAL_LAYERS, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function openViaGdal(
  path: string,
  kind: GdalFileType,
  { layer, ...place }: { layer?: string; position?: GeoreferencingOverride; pam?: Pam } = {},
): Promise<RasterHeader> {
  const { driver, layerDriver } = GDAL_FORMATS[kind];
  const file = resolve(path);
  const info = await runGdalInfo(path, file, driver);
  const layers = subdatasetsOf(info, path);
  const names = layers.map(({ name }) => name);
  const chosen = layer === undefined ? layers[0] : layers.find(({ name }) => name === layer);
  if (!chosen) throw subdatasetNotFound(path, layer ?? '', names);
  if (layer === undefined && layers.length > 1) throw subdatasetNotNamed(path, names);
  if (chosen.dataset === file) return headerOf(info, path, file, driver, place);
  const opener = layerDriver ?? driver;
  return headerOf(await runGdalInfo(path, chosen.dataset, opener), path, chosen.dataset, opener, {
    position: place.position,
  });
}

async function headerOf(
  info: GdalInfo,
  path: string,
  dataset: string,
  driver: string,
  { position, pam }: { position?: GeoreferencingOverride; pam?: Pam },
): Promise<RasterHeader> {
  const { width, height, bands } = info;
  if (![width, height, bands.length].every((size) => Number.isInteger(size) && size > 0))
    throw gdalFailed(path, 'gdalinfo', `a size of ${width} x ${height} x ${bands.length}`, '');
  requireSupportedSize(path, width, height, bands.length);
  const dataType = dataTypeOf(bands, path);
  const [blockWidth, blockHeight] = bands[0].block;
  const rowOfBlocks = Math.ceil(width / blockWidth) * blockWidth * blockHeight * bytesPerSample(dataType);
  if (!(rowOfBlocks > 0 && rowOfBlocks <= MAX_BLOCK_BYTES))
    throw unsupported(
      path,
      `a row of its blocks of ${blockWidth} x ${blockHeight} pixels is more than 1 GiB`,
    );
  // An image of only an alpha band has no data, so the first band never counts as alpha.
  const alpha = bands.findIndex((band, i) => i > 0 && band.alpha);
  return {
    path,
    fileBytes: (await stat(path)).size,
    width,
    height,
    bands: bands.length,
    dataType,
    ...(position
      ? georeferenceByCorners(position, { path, width, height })
      : placeWithPam({ crs: () => gdalCrs(info, path), transform: () => gdalTransform(info, path) }, pam)),
    nodata: nodataOf(bands, dataType, path),
    palette: bands.some((band) => band.palette),
    colours: dataType === 'uint8' && bands.length === 1 ? coloursOf(bands[0]) : undefined,
    ...(alpha > 0 && { alpha }),
    blocks: { reader: 'gdal', driver, dataset, width: blockWidth, height: blockHeight },
    bandTags: bands.map(bandTags),
    metadata: info.metadata,
  };
}

function dataTypeOf(bands: GdalBand[], path: string): DataType {
  // Before GDAL 3.7, signed bytes are bytes with a metadata item.
  const types = new Set(bands.map(({ type, signedByte }) => (signedByte ? 'Int8' : type)));
  if (types.size > 1) throw unsupported(path, 'its bands are of different data types');
  const [type] = types;
  const name = type === 'Byte' ? 'uint8' : type.toLowerCase();
  const dataType = DATA_TYPES.find((known) => known === name);
  if (!dataType) throw unsupported(path, `its pixels are of type ${type}`);
  return dataType;
}

function nodataOf(bands: GdalBand[], dataType: DataType, path: string): number | undefined {
  const values = new Set(bands.map(({ nodata }) => nodata));
  if (values.size > 1) throw unsupported(path, 'its bands have different nodata values');
  return parseNodata(bands[0].nodata, dataType);
}

/** In the order of TIFF's ColorMap; values without a colour are black. */
function coloursOf({ palette, colours }: GdalBand): ColourTable | undefined {
  if (!palette || colours.length === 0) return undefined;
  return [0, 1, 2].flatMap((part) => Array.from({ length: 256 }, (_, i) => 257 * (colours[i]?.[part] ?? 0)));
}

function bandTags({ description, scale, offset }: GdalBand): BandTags {
  return {
    ...(description === undefined ? {} : { description }),
    ...(scale === undefined ? {} : { scale }),
    ...(offset === undefined ? {} : { offset }),
  };
}
