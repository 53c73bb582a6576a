/**
 * GDAL's Persistent Auxiliary Metadata (PAM): properties of a raster in a file of the same name and `.aux.xml`, which GDAL
 * writes if the format cannot hold them. Georeferencing and nodata values are read, if the raster has none of its own.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { messageOf } from '../../errors.js';
import { affineOfGdal, crsFromEpsg, crsFromWkt, isInvertible } from '../crs/index.js';
import { noCrs } from '../errors.js';
import { parseNodata } from '../pixels/index.js';
import type { Affine, Crs, RasterHeader } from '../raster-types.js';
import { elementsOf, parseXmlTree, type XmlElement } from './xml-metadata-tree.js';

export interface Pam {
  path: string;
  /** Well-known text, or a code such as EPSG:32633. */
  srs: string | undefined;
  transform: Affine | undefined;
  /** Text by band index. */
  nodata: Map<number, string>;
}

/** Histograms and attribute tables make these files larger than the properties that are read. */
const MAX_BYTES = 16e6;

/** Refuses links, and does not wait for a writer of a named pipe. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Codes of `open` if the name does not exist, or is a link or a socket. FreeBSD returns EMLINK for a link. */
const NO_FILE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EMLINK', 'ENXIO']);

/** The path of the PAM file of a raster. */
export const pamPath = (path: string) => `${path}.aux.xml`;

/**
 * Undefined if the file does not exist. Adds to `warnings` if it cannot be read or is too large. Links are not followed: they
 * could lead out of an allowed folder.
 */
export async function readPam(raster: string, warnings: string[]): Promise<Pam | undefined> {
  const path = pamPath(raster);
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS);
    // Checks the opened file, because another file may take its name at any time.
    const info = await file.stat();
    if (!info.isFile()) return undefined;
    if (info.size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 1e6} MB`);
    return pamOf(parseXmlTree(await file.readFile('utf8')), path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!NO_FILE.has(code)) warnings.push(`${path} is not used: ${messageOf(error)}`);
    return undefined;
  } finally {
    await file?.close();
  }
}

function pamOf(root: XmlElement | undefined, path: string): Pam {
  if (root?.name !== 'PAMDataset') throw new Error('its root element is not PAMDataset');
  const own = (name: string) => root.children.find((child) => child.name === name)?.text || undefined;
  const nodata = new Map<number, string>();
  for (const band of root.children.filter(({ name }) => name === 'PAMRasterBand')) {
    const [value] = elementsOf(band, 'NoDataValue');
    if (value) nodata.set(Number(band.attributes.band) - 1, exactNumber(value));
  }
  return { path, srs: own('SRS'), transform: transformOf(own('GeoTransform')), nodata };
}

/** The text is a rounded decimal. GDAL adds the bytes of the number if the rounding matters. */
function exactNumber({ text, attributes }: XmlElement): string {
  const bytes = Buffer.from(attributes.le_hex_equiv ?? '', 'hex');
  return bytes.length === 8 ? String(bytes.readDoubleLE()) : text;
}

function transformOf(text: string | undefined): Affine | undefined {
  if (text === undefined) return undefined;
  const numbers = text.split(',').map(Number);
  const transform = affineOfGdal(numbers);
  if (numbers.length !== 6 || !numbers.every(Number.isFinite) || !isInvertible(transform))
    throw new Error('its GeoTransform is not six numbers that give pixels an extent');
  return transform;
}

function crsOfText(srs: string, path: string): Crs {
  const [, epsg] = /^EPSG:(\d{1,6})$/i.exec(srs.trim()) ?? [];
  return epsg === undefined ? crsFromWkt(srs, path) : crsFromEpsg(Number(epsg));
}

/** Georeferencing of a raster. */
type Place = Pick<RasterHeader, 'crs' | 'transform' | 'isDescribedOutside'>;

/** The raster's own georeferencing, completed by PAM. Throws the errors of `crs` and `transform`, and TW_RASTER_UNKNOWN_CRS. */
export function placeWithPam(own: { crs: () => Crs; transform: () => Affine }, pam: Pam | undefined): Place {
  const { srs, transform } = pam ?? {};
  let described: Pick<Place, 'isDescribedOutside'> = {};
  const ownOr = <T>(read: () => T, otherwise: (() => T) | undefined): T => {
    try {
      return read();
    } catch (error) {
      if (!otherwise || !noCrs.is(error)) throw error;
      described = { isDescribedOutside: true };
      return otherwise();
    }
  };
  const place = {
    crs: ownOr(own.crs, srs === undefined ? undefined : () => crsOfText(srs, pam!.path)),
    transform: ownOr(own.transform, transform && (() => transform)),
  };
  return { ...place, ...described };
}

/**
 * The nodata value of all bands but alpha; undefined if PAM has none that their type can hold. Adds to `warnings` if the bands
 * have different values.
 */
export function nodataOfPam(
  { nodata, path }: Pam,
  { bands, alpha, dataType }: RasterHeader,
  warnings: string[],
): number | undefined {
  if (nodata.size === 0) return undefined;
  const values = new Set<string | undefined>();
  for (let band = 0; band < bands; band++) if (band !== alpha) values.add(nodata.get(band));
  const [value] = values;
  if (values.size === 1) return parseNodata(value, dataType);
  warnings.push(`the nodata values of ${path} differ between bands and are not used (--nodata sets one)`);
  return undefined;
}
