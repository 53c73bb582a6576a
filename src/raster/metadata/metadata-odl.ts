/**
 * Parses the Object Description Language of the metadata of HDF-EOS and Landsat: GROUP and OBJECT, each with an END_GROUP or
 * END_OBJECT, and KEY=value lines; END ends the text (HDF-EOS Library User's Guide, "Structural Metadata").
 */
export interface OdlNode {
  /** Empty for the root. */
  name: string;
  /** Values as written, without enclosing quotes. */
  values: Record<string, string>;
  children: OdlNode[];
}

/** Real metadata is nested a few levels deep. */
const MAX_DEPTH = 64;

/** Never fails: it skips lines that are not ODL. */
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
