/** Landsat's MTL metadata in its three forms: text, JSON and XML, all with the same groups and keys. */
import { basename } from 'node:path';
import { badMetadata } from '../errors.js';
import { readMetadata } from './metadata-file.js';
import { readXml, type XmlElement } from './xml.js';

export type MtlGroup = { [key: string]: string };

/** Group name -> its keys. Nested groups are flattened by their own name. */
export type Mtl = Map<string, MtlGroup>;

/** The MTL file of a folder, text before JSON before XML; undefined where it has none. */
export function findMtl(files: string[]): string | undefined {
  return [/_MTL\.txt$/i, /_MTL\.json$/i, /_MTL\.xml$/i]
    .map((form) => files.find((file) => form.test(basename(file))))
    .find((file) => file !== undefined);
}

/** Throws TW_INGEST_BAD_METADATA where the file is broken or too large. */
export async function readMtl(path: string): Promise<Mtl> {
  if (/\.xml$/i.test(path)) return mtlOfXml(await readXml(path));
  // Latin-1, because delivered files may carry NUL or other bytes after their end.
  const text = (await readMetadata(path)).toString('latin1');
  return /\.json$/i.test(path) ? mtlOfJson(text, path) : parseMtl(text);
}

/** The text form: `GROUP = NAME`, `KEY = value`, `END_GROUP = NAME`, `END`. Quotes are removed. */
export function parseMtl(text: string): Mtl {
  const groups: Mtl = new Map();
  const open: MtlGroup[] = [];
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*([A-Z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line);
    if (!match) {
      if (/^\s*END\s*$/.test(line)) break;
      continue;
    }
    const [, key, value] = match;
    if (key === 'GROUP') {
      const group: MtlGroup = {};
      groups.set(value, group);
      open.push(group);
    } else if (key === 'END_GROUP') {
      open.pop();
    } else if (open.length > 0) {
      open[open.length - 1][key] = value.replace(/^"(.*)"$/, '$1');
    }
  }
  return groups;
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
    add(JSON.parse(text.slice(0, text.lastIndexOf('}') + 1)));
  } catch (error) {
    throw badMetadata.because(error, path, (error as Error).message);
  }
  return groups;
}
