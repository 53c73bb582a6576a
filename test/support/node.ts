import { toArray } from '../../src/async/index.js';
import type { IngestResults } from '../../src/ingest/index.js';
import { type NodeConfig, openNode, type TilewrightNode } from '../../src/node.js';
import type { TileRecord } from '../../src/storage/index.js';
import { atEnd } from './at-end.js';
import { runRequest } from './run-job.js';

/** Opens a node for a test and closes it after the test. */
export async function testNode(
  t: { after(work: () => Promise<void>): void },
  data: string,
  config: { memory?: number; cores?: number; cloudModel?: string } & Pick<NodeConfig, 'hosts' | 'cors'> = {},
): Promise<TilewrightNode> {
  const node = await openNode({ data, memory: 512e6, cores: 2, ...config });
  atEnd(t, () => node.close());
  return node;
}

/** Ingests as the command does and returns the results, even if every scene failed. */
export async function ingest(node: TilewrightNode, inputs: object): Promise<IngestResults> {
  const { results, error } = await runRequest<IngestResults>(node, '/ingest', inputs);
  if (!results) throw new Error(JSON.stringify(error));
  return results;
}

export function tilesOf(node: TilewrightNode): Promise<TileRecord[]> {
  return toArray(node.storage.catalogue.tiles.values());
}
