/**
 * Landsat's MTL text: `GROUP = NAME`, `KEY = value`, `END_GROUP = NAME`, `END`. Read as latin1, because delivered files may
 * carry NUL or other bytes after END.
 */
export type MtlGroup = { [key: string]: string };

/** Group name -> its keys. Nested groups are flattened by their own name; quotes are removed. */
export function parseMtl(text: string): Map<string, MtlGroup> {
  const groups = new Map<string, MtlGroup>();
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
