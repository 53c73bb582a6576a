import type { ListedNode } from '../../client/index.js';
import { ambiguousNode } from '../errors.js';

/**
 * Returns the id of the node with this id, this address, or the only id that starts with `name`. An unknown name is returned unchanged,
 * and the server reports it. Throws TW_CLI_NODE.
 */
export function resolveNode(nodes: readonly ListedNode[], name: string): string {
  const address = name.replace(/\/+$/, '');
  const exact = nodes.find(({ id, url }) => id === name || url === address || hostOf(url) === address);
  if (exact) return exact.id;
  const matches = nodes.filter(({ id }) => id.startsWith(name)).map(({ id }) => id);
  if (matches.length > 1) throw ambiguousNode(name, matches);
  return matches[0] ?? name;
}

const hostOf = (url: string | undefined) => url && new URL(url).host;
