/**
 * Restores of etcd: the one that wrote the keys in a coordination store, and the last one of a tile store, `restorations/<number>-<id>`.
 * They differ if another coordination store has taken over the tile store since.
 */
import { randomUUID } from 'node:crypto';
import { toArray } from '../../async/index.js';
import { type CoordinationStore, parseJsonValue, readKey } from '../../coordination/index.js';
import type { ObjectStore } from '../../storage/index.js';

const EPOCH_KEY = 'restored';
const FOLDER = 'restorations/';
/** Digits of the number in a name, so that names sort by it. */
const EPOCH_DIGITS = 8;

export interface RestoreRecord {
  id: string;
  /** A description of the restored coordination store. */
  coordination?: string;
}

/** The record in the coordination store of the restore that wrote its keys. */
interface EpochDocument {
  id: string;
  /** The number of the restore, counted per tile store. Earlier versions of the program did not write it. */
  epoch?: number;
}

/**
 * The restore that wrote the keys; undefined if there was none. If a node knows another restore, the commit numbers that it has seen may
 * now belong to other commits.
 */
export async function readEpoch(coordination: CoordinationStore): Promise<EpochDocument | undefined> {
  const kv = await readKey(coordination, EPOCH_KEY);
  return kv && parseJsonValue<EpochDocument>(kv, ['id']);
}

/** The epoch of new versions: the number of the restore, 0 if there was none. `objects` is the tile store of the keys. */
export async function epochNumber(
  restored: EpochDocument | undefined,
  objects: ObjectStore,
): Promise<number> {
  if (!restored) return 0;
  return restored.epoch ?? numberOf(await newestName(objects));
}

/** The operation that records which restore wrote the keys. */
export const epochPut = ({ id, epoch }: Required<EpochDocument>) =>
  ({ op: 'put', key: EPOCH_KEY, value: JSON.stringify({ id, epoch } satisfies EpochDocument) }) as const;

/** The last restore from a tile store; undefined if there was none. */
export async function latestRestore(objects: ObjectStore): Promise<RestoreRecord | undefined> {
  const name = await newestName(objects);
  return name === undefined ? undefined : (JSON.parse((await objects.get(name)).toString()) as RestoreRecord);
}

/** Records a restore in the tile store, so that nodes of the previous coordination store refuse to start. */
export async function startEpoch(
  objects: ObjectStore,
  coordination: string | undefined,
): Promise<Required<EpochDocument>> {
  const last = numberOf(await newestName(objects));
  const id = randomUUID();
  const name = `${FOLDER}${`${last + 1}`.padStart(EPOCH_DIGITS, '0')}-${id}`;
  await objects.put(name, Buffer.from(JSON.stringify({ id, coordination })));
  return { id, epoch: last + 1 };
}

const numberOf = (name: string | undefined) =>
  Number(name?.slice(FOLDER.length, FOLDER.length + EPOCH_DIGITS) ?? 0);

async function newestName(objects: ObjectStore): Promise<string | undefined> {
  return (await toArray(objects.list(FOLDER))).at(-1)?.name;
}
