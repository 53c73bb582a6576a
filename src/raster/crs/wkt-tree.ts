/** Parses well-known text of coordinate systems (WKT 1 and WKT 2, ISO 19162) into a tree. */

/** An element: `UNIT["degree", 0.0174]` has the keyword UNIT, one text and one number. */
export interface WktNode {
  /** In capitals. */
  keyword: string;
  texts: string[];
  numbers: number[];
  children: WktNode[];
}

const MAX_CHARACTERS = 20_000;
const MAX_DEPTH = 30;
const TOKEN =
  /\s*(?:"((?:[^"]|"")*)"|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([A-Za-z_]\w*)|([[(\]),]))/y;

/** Undefined if the text is not one element, or is longer or deeper than real ones. */
export function parseWkt(text: string): WktNode | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const root: WktNode = { keyword: '', texts: [], numbers: [], children: [] };
  const open = [root];
  // A word is an element if a bracket follows; other words are constants such as NORTH.
  let word: string | undefined;
  TOKEN.lastIndex = 0;
  for (let end = 0; end < text.trimEnd().length; end = TOKEN.lastIndex) {
    const token = TOKEN.exec(text);
    if (!token) return undefined;
    const [, quoted, number, name, mark] = token;
    const node = open.at(-1)!;
    if (word !== undefined && mark !== '[' && mark !== '(') node.texts.push(word);
    if (quoted !== undefined) node.texts.push(quoted.replaceAll('""', '"'));
    else if (number !== undefined) node.numbers.push(Number(number));
    else if (mark === '[' || mark === '(') {
      if (word === undefined || open.length > MAX_DEPTH) return undefined;
      const child: WktNode = { keyword: word.toUpperCase(), texts: [], numbers: [], children: [] };
      node.children.push(child);
      open.push(child);
    } else if (mark === ']' || mark === ')') {
      open.pop();
      if (open.length === 0) return undefined;
    }
    word = name;
  }
  return open.length === 1 && root.children.length === 1 ? root.children[0] : undefined;
}

/** The first child with one of these keywords. */
export function child(node: WktNode, ...keywords: string[]): WktNode | undefined {
  return node.children.find(({ keyword }) => keywords.includes(keyword));
}

/** The EPSG code of an element itself: its AUTHORITY (WKT 1) or ID (WKT 2). */
export function epsgFromNode(node: WktNode): number | undefined {
  const id = child(node, 'AUTHORITY', 'ID');
  if (id?.texts[0]?.toUpperCase() !== 'EPSG') return undefined;
  const code = Number(id.texts[1] ?? id.numbers[0]);
  return Number.isInteger(code) ? code : undefined;
}

/** A name without differences of spelling: lower case letters and digits only. */
export function normaliseWktName(name: string | undefined): string {
  return (name ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
}
