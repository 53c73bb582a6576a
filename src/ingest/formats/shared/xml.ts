/** XML metadata as a plain tree. Entities and document types are refused, sizes and depths are bounded. */
import { SaxesParser } from 'saxes';
import { TilewrightError } from '../../../errors.js';
import { badMetadata } from '../../errors.js';
import { readMetadata, readStart } from './metadata-file.js';

export interface XmlElement {
  /** Without its namespace prefix. */
  name: string;
  attributes: Record<string, string>;
  children: XmlElement[];
  /** Its own text, trimmed. */
  text: string;
}

/** Far above what space agencies write: the largest tile metadata of Sentinel-2 has about 20,000 elements. */
const MAX_ELEMENTS = 400_000;
const MAX_DEPTH = 64;

/** The root of a document. Throws TW_INGEST_BAD_METADATA, naming the file. */
export async function readXml(path: string): Promise<XmlElement> {
  const text = decode(await readMetadata(path));
  // Delivered files may carry NUL bytes after the end.
  return parseXml(text.slice(0, text.lastIndexOf('>') + 1), path);
}

/** The root of a document, `path` for messages. Throws TW_INGEST_BAD_METADATA. */
export function parseXml(text: string, path: string): XmlElement {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw badMetadata.because(error, path, (error as Error).message);
  }
}

function parse(text: string): XmlElement {
  const document: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const path = [document];
  let elements = 0;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('doctype', () => {
    throw new Error('it has a document type, which metadata has no need of');
  });
  parser.on('opentag', ({ name, attributes }) => {
    if (++elements > MAX_ELEMENTS) throw new Error(`it has more than ${MAX_ELEMENTS} elements`);
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

/** All elements of a name below an element, in the order of the document. */
export function elementsOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.flatMap((child) =>
    child.name === name ? [child, ...elementsOf(child, name)] : elementsOf(child, name),
  );
}

/** The text of the first element of a name below an element; undefined where there is none or it is empty. */
export function textOf(element: XmlElement, name: string): string | undefined {
  return elementsOf(element, name)[0]?.text || undefined;
}

/** Local name of a document's root by its first bytes, without reading the rest; null where it does not look like XML. */
export async function rootName(path: string): Promise<string | null> {
  const text = decode(await readStart(path, 8192));
  if (!/^\s*</.test(text)) return null;
  const root = /<([A-Za-z_][\w.:-]*)/.exec(text.replace(/<!--[\s\S]*?-->/g, ''));
  return root && localName(root[1]);
}

const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/** UTF-8, or UTF-16 by its mark. Wrong bytes in units and comments are no reason to refuse a scene. */
function decode(bytes: Buffer): string {
  const mark = bytes.length >= 2 ? bytes.readUInt16BE(0) : 0;
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
