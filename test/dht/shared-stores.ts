/** The shared resources of nodes: a tile store and a coordination store, in one process. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { LevelStore } from '../../src/coordination/level-store.js';
import type { CoordinationStore } from '../../src/coordination/store.js';
import { type ObjectStore, openObjectStore } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';

export interface SharedStores {
  /** Parent folder of the nodes' folders. */
  folder: string;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** Called at the end of the test, the last one first, before the shared resources are closed. */
  stops: (() => Promise<void>)[];
}

export async function sharedStores(t: TestContext): Promise<SharedStores> {
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-cluster-'));
  await mkdir(join(folder, 'store'));
  const objects = await openObjectStore(pathToFileURL(join(folder, 'store')).href);
  const coordination = await LevelStore.open(join(folder, 'coordination'));
  const stops: (() => Promise<void>)[] = [];
  atEnd(t, async () => {
    for (const stop of stops.toReversed()) await stop();
    await coordination.close();
    await rm(folder, { recursive: true });
  });
  return { folder, objects, coordination, stops };
}
