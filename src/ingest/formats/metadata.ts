/**
 * Reads metadata of products as files and as XML, within limits of size, and the products in the form of DLR (EnMAP, DESIS): files with one
 * stem in a folder, and metadata in XML that lists the bands.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  elementsOf,
  localName,
  openFile,
  parseXmlTree,
  readStart,
  textOf,
  type XmlElement,
} from '../../raster/index.js';
import { badMetadata } from '../errors.js';
import type { InputProbe } from '../scene.js';
import { type AcquisitionTime, parseTime, timeRange } from './acquisition-time.js';

/** Far above real metadata: the largest tile metadata of Sentinel-2 has about 1 MB. */
const MAX_METADATA_BYTES = 16e6;

/** Reads a metadata file. Throws TW_INGEST_BAD_METADATA if it is too large. */
export async function readMetadataFile(path: string): Promise<Buffer> {
  const bytes = await readMetadataStart(path, MAX_METADATA_BYTES + 1);
  if (bytes.length > MAX_METADATA_BYTES) {
    throw badMetadata(path, `it is larger than the ${MAX_METADATA_BYTES / 1e6} MB that metadata may have`);
  }
  return bytes;
}

/** Reads the first bytes of a file, at most `bytes`. Throws TW_INGEST_BAD_METADATA if it cannot be opened. */
async function readMetadataStart(path: string, bytes: number): Promise<Buffer> {
  const file = await openFile(path).catch((error) => {
    throw badMetadata.because(error, path, (error as Error).message);
  });
  try {
    return await readStart(file, Math.min((await file.stat()).size, bytes));
  } finally {
    await file.close();
  }
}

/** The root of a document. Throws TW_INGEST_BAD_METADATA, naming the file. */
export async function readXml(path: string): Promise<XmlElement> {
  const text = decode(await readMetadataFile(path));
  // Delivered files may carry NUL bytes after the end.
  return parseXml(text.slice(0, text.lastIndexOf('>') + 1), path);
}

/** The root of a document; `path` is for messages. Throws TW_INGEST_BAD_METADATA. */
export function parseXml(text: string, path: string): XmlElement {
  try {
    return parseXmlTree(text);
  } catch (error) {
    throw badMetadata.because(error, path, (error as Error).message);
  }
}

/** Local name of a document's root element, from its first bytes only; null if it does not look like XML. */
export async function rootName(path: string): Promise<string | null> {
  const text = decode(await readMetadataStart(path, 8192));
  if (!/^\s*</.test(text)) return null;
  const root = /<([A-Za-z_][\w.:-]*)/.exec(text.replace(/<!--[\s\S]*?-->/g, ''));
  return root && localName(root[1]);
}

/** UTF-8, or UTF-16 by its byte order mark. Invalid bytes in units and comments do not make a scene unusable. */
function decode(bytes: Buffer): string {
  const mark = bytes.length >= 2 ? bytes.readUInt16BE(0) : 0;
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}

/** The metadata file: the given file, or the metadata file in the given folder. The first group of `pattern` is the stem of the product. */
export function findMetadataFile({ path, entries }: InputProbe, pattern: RegExp): string | undefined {
  if (entries === null) return pattern.test(basename(path)) ? path : undefined;
  const name = entries.find((entry) => pattern.test(entry));
  return name === undefined ? undefined : join(path, name);
}

/** Files of the product: all files of its folder, or the files beside the given metadata file with the same stem. */
export async function findProductFiles(
  { path, entries }: InputProbe,
  metadata: string,
  stem: string,
): Promise<string[]> {
  if (entries !== null) return entries.map((name) => join(path, name));
  const folder = dirname(metadata);
  return (await readdir(folder)).filter((name) => name.startsWith(stem)).map((name) => join(folder, name));
}

/** Undefined if the element has no number of this name. */
export function numberElement(element: XmlElement, name: string): number | undefined {
  const value = Number(textOf(element, name) ?? NaN);
  return Number.isFinite(value) ? value : undefined;
}

/** Throws TW_INGEST_BAD_METADATA, with the number of the band. */
export function requiredNumber(band: XmlElement, number: string, name: string, metadata: string): number {
  const value = numberElement(band, name);
  if (value === undefined) throw badMetadata(metadata, `band ${number} has no ${name}`);
  return value;
}

/** The time of the scene; `end` is the name of the element with its end. Throws TW_INGEST_BAD_METADATA. */
export function temporalCoverage(root: XmlElement, end: string, metadata: string): AcquisitionTime {
  const [coverage] = elementsOf(root, 'temporalCoverage');
  const time = (name: string) => parseTime((coverage && textOf(coverage, name)) ?? '');
  const range = timeRange(time('startTime'), time(end));
  if (!range) throw badMetadata(metadata, 'it has no temporalCoverage with a startTime');
  return range;
}
