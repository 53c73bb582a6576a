/** Metadata and georeferencing beside the pixels: XML, GDAL's `.aux.xml` (PAM) and TIFF tag 42112, corners that the user gives, and ODL. */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { SaxesParser } from 'saxes';
import { messageOf, TilewrightError } from '../errors.js';
import { affineOfGdal, createTransform, crsFromEpsg, isInvertible, pixelToMap } from './crs/crs.js';
import { crsFromWkt } from './crs/wkt.js';
import { corrupt, noCrs, unknownCrs } from './errors.js';
import { parseNodata, parseNumber, withDecimalPoint } from './pixels/data-types.js';
import type { Affine, BandTags, Crs, RasterHeader } from './raster.js';
import { parseSpectralTags, spectralMetadataItems } from './wavelengths.js';

export interface XmlElement {
  /** Without its namespace prefix. */
  name: string;
  attributes: Record<string, string>;
  children: XmlElement[];
  /** Its own text, trimmed. */
  text: string;
}

/** Far above real metadata: the largest tile metadata of Sentinel-2 has about 20,000 elements. */
const MAX_XML_ELEMENTS = 400_000;
const MAX_DEPTH = 64;

/**
 * Parses XML into a plain tree and returns its root. Refuses entities and document types, and limits size and depth. Throws an Error with
 * the reason.
 */
export function parseXmlTree(text: string): XmlElement {
  const document: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const path = [document];
  let elements = 0;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('doctype', () => {
    throw new Error('it has a document type, which metadata must not have');
  });
  parser.on('opentag', ({ name, attributes }) => {
    if (++elements > MAX_XML_ELEMENTS) throw new Error(`it has more than ${MAX_XML_ELEMENTS} elements`);
    if (path.length > MAX_DEPTH) throw new Error(`its elements are nested more than ${MAX_DEPTH} deep`);
    const element = { name: localName(name), attributes, children: [], text: '' };
    path[path.length - 1].children.push(element);
    path.push(element);
  });
  const addText = (more: string) => {
    path[path.length - 1].text += more;
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.on('closetag', () => {
    const element = path.pop() as XmlElement;
    element.text = element.text.trim();
  });
  parser.write(text).close();
  return document.children[0];
}

/** All elements with a name below an element, in document order. */
export function elementsOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.flatMap((child) =>
    child.name === name ? [child, ...elementsOf(child, name)] : elementsOf(child, name),
  );
}

/** The text of the first element with a name below an element; undefined if there is none or it is empty. */
export function textOf(element: XmlElement, name: string): string | undefined {
  return elementsOf(element, name)[0]?.text || undefined;
}

export const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/**
 * GDAL's Persistent Auxiliary Metadata (PAM): properties of a raster in a file of the same name and `.aux.xml`, which GDAL writes if the
 * format cannot hold them. Georeferencing, nodata values, scales and descriptions are read, if the raster has none of its own.
 */
export interface Pam {
  path: string;
  /** Well-known text, or a code such as EPSG:32633. */
  srs: string | undefined;
  transform: Affine | undefined;
  /** Text by band index. */
  nodata: Map<number, string>;
  /** Scale, offset and description by band index. */
  bandTags: Map<number, BandTags>;
  /** True if any band, also of a layer, has a scale or offset. */
  isScaled: boolean;
}

/** Histograms and attribute tables make these files larger than the properties that are read. */
const MAX_PAM_BYTES = 16e6;

/** Refuses links, and does not wait for a writer of a named pipe. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Codes of `open` if the name does not exist, or is a link or a socket. FreeBSD returns EMLINK for a link. */
const NO_FILE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EMLINK', 'ENXIO']);

/** The path of the PAM file of a raster. */
export const pamPath = (path: string) => `${path}.aux.xml`;

/**
 * Undefined if the file does not exist. Adds to `warnings` if it cannot be read or is too large. Links are not followed: they
 * could lead out of an allowed folder. Throws TW_RASTER_CORRUPT for a scale or offset that is not a number.
 */
export async function readPam(raster: string, warnings: string[]): Promise<Pam | undefined> {
  const path = pamPath(raster);
  let file: FileHandle | undefined;
  try {
    file = await open(path, OPEN_FLAGS);
    // Checks the opened file, because another file may take its name at any time.
    const info = await file.stat();
    if (!info.isFile()) return undefined;
    if (info.size > MAX_PAM_BYTES) throw new Error(`it is larger than ${MAX_PAM_BYTES / 1e6} MB`);
    return pamOf(parseXmlTree(await file.readFile('utf8')), path);
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
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
  const bandTags = new Map<number, BandTags>();
  for (const band of root.children.filter(({ name }) => name === 'PAMRasterBand')) {
    const index = Number(band.attributes.band) - 1;
    const [value] = elementsOf(band, 'NoDataValue');
    if (value) nodata.set(index, exactNumber(value));
    // As in GDAL, in any case.
    const child = (name: string) =>
      band.children.find((element) => element.name.toLowerCase() === name)?.text;
    const stated = (name: string) => {
      const text = child(name);
      if (text === undefined || Number.isFinite(parseNumber(text))) return text && { [name]: Number(text) };
      throw badScaleText(path, name, index, text);
    };
    const description = child('description');
    bandTags.set(index, { ...(description && { description }), ...stated('scale'), ...stated('offset') });
  }
  const isScaled = [...elementsOf(root, 'Scale'), ...elementsOf(root, 'Offset')].length > 0;
  return { path, srs: own('SRS'), transform: transformOf(own('GeoTransform')), nodata, bandTags, isScaled };
}

const badScaleText = (path: string, name: string, band: number, text: string) =>
  corrupt(
    path,
    `the ${name} of band ${band + 1} is "${text.slice(0, 40)}", which is not a number`,
    REWRITE_SCALE,
  );

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

/** Largest distance between positions by two texts of one system. */
const MAX_DIFFERENCE_DEGREES = 1e-5;
/** Largest difference of the origins and steps of one position, as a share of the size of a pixel. */
const MAX_DIFFERENCE_PIXELS = 1e-3;

/**
 * The position in PAM if it differs from that of a raster which has one of its own, with an entry in `warnings`. Empty if both are the
 * same, or if PAM has none that can be read.
 */
export function otherPlace(
  { path, srs, transform }: Pam,
  own: Pick<RasterHeader, 'crs' | 'transform'>,
  warnings: string[],
): Partial<Place> {
  const crs = srs === undefined ? own.crs : readableCrs(srs, path, warnings);
  const [x, y] = pixelToMap(own.transform, 0, 0);
  const at = (system: Crs) => createTransform(system, 'EPSG:4326')(x, y);
  const [lon, lat] = at(own.crs);
  const [otherLon, otherLat] = crs ? at(crs) : [lon, lat];
  const isOtherCrs = !(Math.hypot(lon - otherLon, lat - otherLat) < MAX_DIFFERENCE_DEGREES);
  const size = Math.hypot(own.transform.xx, own.transform.yx);
  const keys = Object.keys(own.transform) as (keyof Affine)[];
  const isMoved =
    transform !== undefined &&
    keys.some((key) => Math.abs(transform[key] - own.transform[key]) > MAX_DIFFERENCE_PIXELS * size);
  if (!isOtherCrs && !isMoved) return {};
  warnings.push(`its position is that of ${path}, as in GDAL, and not the one that the file itself has`);
  return {
    crs: isOtherCrs ? crs! : own.crs,
    transform: isMoved ? transform : own.transform,
    isDescribedOutside: true,
  };
}

/** Undefined, with a warning, if the system is not known. */
function readableCrs(srs: string, path: string, warnings: string[]): Crs | undefined {
  try {
    return crsOfText(srs, path);
  } catch (error) {
    if (!unknownCrs.is(error)) throw error;
    warnings.push(`the coordinate system in ${path} is not known, so that of the file is used`);
    return undefined;
  }
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
  if (values.size === 1) return parseNodata(value, dataType, warnings);
  warnings.push(`the nodata values of ${path} differ between bands and are not used (--nodata sets one)`);
  return undefined;
}

/**
 * The tags of the bands, completed by PAM. As in GDAL, a scale or offset of the raster itself replaces both. Adds to `warnings` if they
 * differ.
 */
export function bandTagsWithPam(tags: BandTags[], { path, bandTags }: Pam, warnings: string[]): BandTags[] {
  return tags.map((tag, band) => {
    const pam = bandTags.get(band) ?? {};
    if (tag.scale === undefined && tag.offset === undefined) return { ...pam, ...tag };
    const isOther = (pam.scale ?? tag.scale) !== tag.scale || (pam.offset ?? tag.offset) !== tag.offset;
    if (isOther)
      warnings.push(`scale and offset of band ${band + 1} in ${path} are not used: the file has its own`);
    return { ...(pam.description && { description: pam.description }), ...tag };
  });
}

/**
 * The XML of TIFF tag 42112, in which GDAL keeps metadata items of the dataset and properties of bands; undefined if it would be empty.
 * GDAL escapes the text of an item twice, and expects other writers to do the same.
 */
export function gdalMetadataXml(metadata: Record<string, string>, bandTags: BandTags[]): string | undefined {
  const items = Object.entries(metadata).map(([name, value]) => itemXml(name, '', value));
  for (const [band, { description, scale, offset, ...spectral }] of bandTags.entries()) {
    const of = (name: string, value: string) =>
      items.push(itemXml(name, ` sample="${band}" role="${name.toLowerCase()}"`, value));
    if (description !== undefined) of('DESCRIPTION', description);
    if (offset !== undefined) of('OFFSET', String(offset));
    if (scale !== undefined) of('SCALE', String(scale));
    for (const { name, value, domain } of spectralMetadataItems(spectral))
      items.push(itemXml(name, ` sample="${band}"${domain ? ` domain="${domain}"` : ''}`, value));
  }
  return items.length === 0 ? undefined : `<GDALMetadata>\n${items.join('')}</GDALMetadata>\n`;
}

function itemXml(name: string, attributes: string, value: string): string {
  return `  <Item name="${escapeXml(name)}"${attributes}>${escapeXml(escapeXml(value))}</Item>\n`;
}

const ENTITY_OF: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Replaces control characters that XML 1.0 cannot hold by blanks. */
function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/gu, ' ')
    .replace(/[&<>"]/g, (character) => ENTITY_OF[character]);
}

/** GDAL metadata of a file and its bands. */
interface GdalMetadata {
  metadata: Record<string, string>;
  bandTags: BandTags[];
  /** GDAL's colour interpretation of each band in lower case, if it differs from that of the TIFF tags. */
  interpretations: (string | undefined)[];
  /** Guesses that the parser made. */
  warnings: string[];
}

const ROLE = {
  scale: 'scale',
  offset: 'offset',
  description: 'description',
  colorinterp: 'colorinterp',
} as const;
/** A role of an item that states a scale, also in XML that cannot be parsed. */
const SCALE_ROLE = /\brole\s*=\s*["']?\s*(scale|offset)\b/i;

/**
 * Parses the XML. Leaves out items of other domains than the default, except those of the spectrum. Throws TW_RASTER_CORRUPT if a scale or
 * offset is stated and cannot be read.
 */
export function parseGdalMetadata(xml: string, bands: number, path: string): GdalMetadata {
  const metadata: Record<string, string> = {};
  const bandTags: BandTags[] = Array.from({ length: bands }, () => ({}));
  const interpretations: (string | undefined)[] = new Array(bands).fill(undefined);
  const bandItems = Array.from({ length: bands }, () => new Map<string, string>());
  const warnings: string[] = [];
  for (const { attributes, text } of itemsOf(xml, path, warnings)) {
    const { name, sample, role = '', domain = '' } = attributes;
    if (name === undefined) continue;
    const value = unescapeXml(text);
    const band = sample === undefined ? -1 : Number.parseInt(sample, 10);
    const kind = ROLE[role.toLowerCase() as keyof typeof ROLE];
    const scale = /^\s*(scale|offset)\s*$/i.exec(role)?.[1]?.toLowerCase();
    if (scale) {
      const number = parseGdalNumber(value);
      if (!(band >= 0))
        throw corrupt(
          path,
          `its metadata have a ${scale} "${value.slice(0, 40)}" without a band`,
          REWRITE_SCALE,
        );
      if (!kind || Number.isNaN(number)) throw badScaleText(path, scale, band, value);
      const tags = bandTags[band];
      if (tags) tags[scale as 'scale' | 'offset'] = number;
      continue;
    }
    if (domain === 'IMAGERY') bandItems[band]?.set(`IMAGERY:${name}`, value);
    if (domain !== '') continue;
    if (sample === undefined)
      Object.defineProperty(metadata, name, { value, enumerable: true, configurable: true, writable: true });
    else if (!bandTags[band]) continue;
    else if (kind === 'colorinterp') interpretations[band] = value.toLowerCase();
    else if (kind === 'description') bandTags[band].description = value;
    else if (role === '') bandItems[band]!.set(name, value);
  }
  const described = bandItems.map((items, band) => ({ items, description: bandTags[band]!.description }));
  for (const [band, tags] of parseSpectralTags(described, warnings).entries())
    Object.assign(bandTags[band]!, tags);
  return { metadata, bandTags, interpretations, warnings };
}

/** The items, with names of attributes in lower case, because GDAL ignores the case. A warning if the text is not XML. */
function itemsOf(xml: string, path: string, warnings: string[]): Pick<XmlElement, 'attributes' | 'text'>[] {
  if (xml.trim() === '') return [];
  try {
    // As GDAL, accepts what XML does not: plain ampersands, control characters, and blanks before the declaration.
    const text = xml.trim().replace(/&(?!(?:#\d+|#x[\da-f]+|amp|lt|gt|quot|apos);)/gi, '&amp;');
    const root = parseXmlTree(text.replace(/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/gu, ' '));
    if (root?.name.toLowerCase() !== 'gdalmetadata') throw new Error('its root element is not GDALMetadata');
    const items = root.children.filter(({ name }) => name.toLowerCase() === 'item');
    return items.map(({ attributes, text }) => ({
      attributes: Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [name.toLowerCase(), value]),
      ),
      text,
    }));
  } catch (error) {
    const what = `its GDAL metadata cannot be read: ${messageOf(error).split('\n', 1)[0]}`;
    if (SCALE_ROLE.test(xml))
      throw corrupt.because(error, path, `${what}, and they state a scale or offset`, REWRITE_SCALE);
    warnings.push(what);
    return [];
  }
}

const REWRITE_SCALE = 'Write it again with gdal_translate -a_scale SCALE -a_offset OFFSET IN OUT.tif.';

/** NaN if the text is more than a number. */
const parseGdalNumber = (text: string) => parseNumber(withDecimalPoint(text));

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal !== undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** Georeferencing given by the user for a raster that has none, or a wrong one. */
export interface GeoreferencingOverride {
  crs: Crs;
  /** Outer corners of the upper left and of the lower right pixel, in the units of the system (longitude first). */
  corners: readonly [upperLeftX: number, upperLeftY: number, lowerRightX: number, lowerRightY: number];
}

/** The georeferencing of an image of this size. Throws TW_RASTER_NO_CRS if the corners enclose no area. */
export function georeferenceByCorners(
  { crs, corners }: GeoreferencingOverride,
  { path, width, height }: Pick<RasterHeader, 'path' | 'width' | 'height'>,
): { crs: Crs; transform: Affine; isDescribedOutside: true } {
  const [left, top, right, bottom] = corners;
  if (!(right > left && top > bottom)) throw noCrs(path, 'its pixels have no extent');
  const transform = {
    originX: left,
    originY: top,
    xx: (right - left) / width,
    xy: 0,
    yx: 0,
    yy: (bottom - top) / height,
  };
  return { crs, transform, isDescribedOutside: true };
}

interface OdlNode {
  /** Empty for the root. */
  name: string;
  /** Values as written, without enclosing quotes. */
  values: Record<string, string>;
  children: OdlNode[];
}

/**
 * Parses the Object Description Language of the metadata of HDF-EOS and Landsat: GROUP and OBJECT, each with an END_GROUP or END_OBJECT,
 * and KEY=value lines; END ends the text (HDF-EOS Library User's Guide, "Structural Metadata"). Never fails: it skips lines that are not
 * ODL.
 */
export function parseOdl(text: string): OdlNode {
  const root: OdlNode = { name: '', values: {}, children: [] };
  const open = [root];
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*([\w.]+)\s*(?:=\s*(.*?)\s*)?$/.exec(line);
    if (!match) continue;
    const [, key, value] = match;
    if (key === 'END' && value === undefined) break;
    if (value === undefined) continue;
    const node = open[open.length - 1];
    if (key === 'GROUP' || key === 'OBJECT') {
      const child: OdlNode = { name: unquote(value), values: {}, children: [] };
      node.children.push(child);
      if (open.length < MAX_DEPTH) open.push(child);
    } else if (key === 'END_GROUP' || key === 'END_OBJECT') {
      if (open.length > 1) open.pop();
    } else node.values[key] = unquote(value);
  }
  return root;
}

/** The node itself and all nodes below it, each before its children. */
export function* odlNodes(node: OdlNode): Generator<OdlNode> {
  yield node;
  for (const child of node.children) yield* odlNodes(child);
}

/** The elements of a value such as `(1, "a")`; a value without brackets is its only element. */
export function odlList(value: string): string[] {
  return value
    .replace(/^\((.*)\)$/s, '$1')
    .split(',')
    .map((part) => unquote(part.trim()));
}

const unquote = (text: string) => text.replace(/^"(.*)"$/, '$1');
