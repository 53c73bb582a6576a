/** Reads XML metadata into a plain tree. */
import { localName, parseXmlTree, type XmlElement } from '../../../raster/index.js';
import { badMetadata } from '../../errors.js';
import { readMetadataFile, readMetadataStart } from './product-metadata-file.js';

export { elementsOf, textOf, type XmlElement } from '../../../raster/index.js';

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
