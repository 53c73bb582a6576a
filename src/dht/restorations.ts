/**
 * Which restoration the keys in a coordination store are of, and which is the last one of a tile store: `restorations/<number>-<id>`. They
 * differ where the tile store was given to another coordination store since.
 */
import { randomUUID } from 'node:crypto';
import type { ObjectStore } from '../storage/index.js';
import { documentOf } from './coordination/documents.js';
import { type CoordinationStore, only } from './coordination/store.js';

const KEY = 'restored';
const FOLDER = 'restorations/';

export interface Restoration {
  id: string;
  /** Into which coordination store, in words. */
  coordination?: string;
}

/**
 * Which restoration the keys are of; undefined where there was none. A node that knows another one has seen commits by numbers that may be
 * those of others now.
 */
export async function readRestored(coordination: CoordinationStore): Promise<string | undefined> {
  const { gets } = await coordination.read([{ key: KEY }]);
  const kv = only(gets[0]!);
  return kv && documentOf<{ id: string }>(kv, ['id']).id;
}

/** What says in the coordination store which restoration its keys are of. */
export const restoredPut = (id: string) => ({ op: 'put', key: KEY, value: JSON.stringify({ id }) }) as const;

/** The last restoration from a tile store; undefined where there was none. */
export async function newestRestoration(objects: ObjectStore): Promise<Restoration | undefined> {
  const name = await newestName(objects);
  return name === undefined ? undefined : (JSON.parse((await objects.get(name)).toString()) as Restoration);
}

/** Notes a restoration, and returns its id: nodes of the coordination store from before do not start any more. */
export async function noteRestoration(
  objects: ObjectStore,
  coordination: string | undefined,
): Promise<string> {
  const last = Number((await newestName(objects))?.slice(FOLDER.length, FOLDER.length + 8) ?? 0);
  const restoration: Restoration = { id: randomUUID(), ...(coordination !== undefined && { coordination }) };
  const name = `${FOLDER}${`${last + 1}`.padStart(8, '0')}-${restoration.id}`;
  await objects.put(name, Buffer.from(JSON.stringify(restoration)));
  return restoration.id;
}

async function newestName(objects: ObjectStore): Promise<string | undefined> {
  let newest: string | undefined;
  for await (const { name } of objects.list(FOLDER)) newest = name;
  return newest;
}
