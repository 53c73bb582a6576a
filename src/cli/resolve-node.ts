import type { ListedNode } from '../client/index.js';
import { ambiguousNode } from './errors.js';

/**
 * The id of the node that is named by its id, its address, or the begin of its id where no other begins so. What names none is given
 * back, for the server to say so. Throws TW_CLI_NODE.
 */
export function resolveNode(nodes: readonly ListedNode[], name: string): string {
  const address = name.replace(/\/+$/, '');
  const exact = nodes.find(({ id, url }) => id === name || url === address || hostOf(url) === address);
  if (exact) return exact.id;
  const begun = nodes.filter(({ id }) => id.startsWith(name)).map(({ id }) => id);
  if (begun.length > 1) throw ambiguousNode(name, begun);
  return begun[0] ?? name;
}

const hostOf = (url: string | undefined) => url && new URL(url).host;
