/** Products in the form of DLR (EnMAP, DESIS): files with one stem in a folder, and metadata in XML that lists the bands. */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { badMetadata } from '../../errors.js';
import type { InputProbe } from '../../ingest-scene-description.js';
import {
  type AcquisitionTime,
  elementsOf,
  parseTime,
  textOf,
  timeRange,
  type XmlElement,
} from '../shared/index.js';

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
