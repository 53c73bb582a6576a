/** Reads Landsat's MTL metadata in its three forms: text, JSON and XML, all with the same groups and keys. */
import { basename } from 'node:path';
import { messageOf } from '../../errors.js';
import { odlNodes, parseOdl, type XmlElement } from '../../raster/index.js';
import { parseJson } from '../../utils/json-text.js';
import { badMetadata } from '../errors.js';
import { readMetadataFile, readXml } from './metadata.js';

export type MtlGroup = { [key: string]: string };

/** Keys by the name of their group. Nested groups are flattened by their own name. */
export type Mtl = Map<string, MtlGroup>;

/** The MTL file of a folder, text before JSON before XML; undefined if there is none. */
export function findMtl(files: string[]): string | undefined {
  return [/_MTL\.txt$/i, /_MTL\.json$/i, /_MTL\.xml$/i]
    .map((form) => files.find((file) => form.test(basename(file))))
    .find((file) => file !== undefined);
}

/** Throws TW_INGEST_BAD_METADATA if the file is damaged or too large. */
export async function readMtl(path: string): Promise<Mtl> {
  if (/\.xml$/i.test(path)) return mtlOfXml(await readXml(path));
  // Latin-1, because delivered files may have NUL or other bytes after their end.
  const text = (await readMetadataFile(path)).toString('latin1');
  return /\.json$/i.test(path) ? mtlOfJson(text, path) : parseMtl(text);
}

/**
 * The value of the first of these keys that a group has. Level 2 repeats the metadata of the level 1 product that it was made from, which
 * count last, in any order of the groups.
 */
export function mtlValue(mtl: Mtl, ...keys: string[]): string | undefined {
  const isSource = (name: string) => /^LEVEL1_/.test(name);
  const groups = [...mtl].sort(([a], [b]) => Number(isSource(a)) - Number(isSource(b)));
  return keys
    .map((key) => groups.find(([, group]) => Object.hasOwn(group, key))?.[1][key])
    .find((value) => value !== undefined);
}

/** The text form is ODL. */
export function parseMtl(text: string): Mtl {
  const [, ...groups] = odlNodes(parseOdl(text));
  return new Map(groups.map(({ name, values }) => [name, values]));
}

function mtlOfXml(root: XmlElement): Mtl {
  const groups: Mtl = new Map();
  const add = (element: XmlElement) => {
    const group: MtlGroup = {};
    groups.set(element.name, group);
    for (const child of element.children) {
      if (child.children.length > 0) add(child);
      else group[child.name] = child.text;
    }
  };
  add(root);
  return groups;
}

function mtlOfJson(text: string, path: string): Mtl {
  const groups: Mtl = new Map();
  const add = (members: object) => {
    for (const [name, value] of Object.entries(members)) {
      if (typeof value !== 'object' || value === null) continue;
      const own = Object.entries(value).filter(([, leaf]) => typeof leaf !== 'object');
      groups.set(name, Object.fromEntries(own.map(([key, leaf]) => [key, String(leaf)])));
      add(value);
    }
  };
  try {
    add(parseJson(text.slice(0, text.lastIndexOf('}') + 1)) as object);
  } catch (error) {
    throw badMetadata.because(error, path, messageOf(error));
  }
  return groups;
}
