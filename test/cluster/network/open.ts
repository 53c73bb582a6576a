import { LoopbackNetwork } from './loopback.js';
import { mayMakeNamespaces, NamespaceNetwork } from './namespaces.js';
import type { Network } from './network.js';

export type NetworkKind = 'namespaces' | 'loopback';

export const bestNetwork = (): NetworkKind => (mayMakeNamespaces() ? 'namespaces' : 'loopback');

export const openNetwork = async (kind: NetworkKind): Promise<Network> =>
  kind === 'namespaces' ? NamespaceNetwork.open() : new LoopbackNetwork();
