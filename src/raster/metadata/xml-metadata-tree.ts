/** Parses XML into a plain tree. Refuses entities and document types, and limits size and depth. */
import { SaxesParser } from 'saxes';

export interface XmlElement {
  /** Without its namespace prefix. */
  name: string;
  attributes: Record<string, string>;
  children: XmlElement[];
  /** Its own text, trimmed. */
  text: string;
}

/** Far above real metadata: the largest tile metadata of Sentinel-2 has about 20,000 elements. */
const MAX_ELEMENTS = 400_000;
const MAX_DEPTH = 64;

/** The root of a document. Throws an Error with the reason. */
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
