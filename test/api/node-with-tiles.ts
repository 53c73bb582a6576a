import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { TilewrightNode } from '../../src/node.js';
import { ingest, testNode } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

/** A node with the tiles of one scene in the collection `test`. */
export async function nodeWithTiles(t: TestContext): Promise<TilewrightNode> {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { cors: ['*'] });
  const href = await writeTestScene(join(folder, 'scene.tif'));
  const scene = { collection: 'test', datetime: '2024-06-01T10:00:00Z', scale: 0.0001, precision: 6 };
  assert.ok((await ingest(node, { href, ...scene })).tiles > 2);
  return node;
}
