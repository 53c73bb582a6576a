/**
 * Which restoration the keys in a coordination store are of, and which is the last one of a tile store: `restorations/<number>-<id>`. They
 * differ where the tile store was given to another coordination store since.
 */
import { randomUUID } from 'node:crypto';
import {
  type CoordinationStore,
  firstKeyValue,
  parseJsonValue,
  retryUntilAnswered,
} from '../../coordination/index.js';
import type { ObjectStore } from '../../storage/index.js';

const EPOCH_KEY = 'restored';
/** Written for the sake of its revision alone. */
const FENCE_KEY = 'fence';
/**
 * Revisions of one coordination store stay below this: at 1,000 changes a second for 34 years. 2^13 restorations fit into the 53 bits of a
 * number.
 */
const FENCES_PER_EPOCH = 2 ** 40;
const FENCE_TIMEOUT_MS = 30_000;
const FOLDER = 'restorations/';
/** Of the number of a restoration, so that names sort by it. */
const EPOCH_DIGITS = 8;

export interface RestoreRecord {
  id: string;
  /** Into which coordination store, in words. */
  coordination?: string;
}

/** The record in the coordination store of the restoration that wrote its keys. */
interface EpochDocument {
  id: string;
  /** The number of the restoration among all of the tile store. Earlier versions of the program wrote none. */
  epoch?: number;
}

/**
 * Which restoration the keys are of; undefined if there was none. A node that knows another one has seen commits by numbers that may be
 * those of others now.
 */
export async function readEpoch(coordination: CoordinationStore): Promise<EpochDocument | undefined> {
  const { gets } = await coordination.read([{ key: EPOCH_KEY }]);
  const kv = firstKeyValue(gets[0]!);
  return kv && parseJsonValue<EpochDocument>(kv, ['id']);
}

/** The epoch of new versions: the number of the restoration, 0 if there was none. `objects` is the tile store of the keys. */
export async function epochNumber(
  restored: EpochDocument | undefined,
  objects: ObjectStore,
): Promise<number> {
  if (!restored) return 0;
  return restored.epoch ?? numberOf(await newestName(objects));
}

/** Puts which restoration the keys are of. */
export const epochPut = ({ id, epoch }: Required<EpochDocument>) =>
  ({ op: 'put', key: EPOCH_KEY, value: JSON.stringify({ id, epoch } satisfies EpochDocument) }) as const;

/**
 * A number for the versions of a new claim in epoch `epoch`, larger than that of every earlier claim on this tile store, and never given
 * twice. In epoch 0, before any restoration, the fence of the claim is such a number.
 *
 * Fences are revisions, and those of a new etcd begin near 0 again. Without this, versions made after a restoration could repeat the
 * name of a version in the store, whose bytes caches hold under that name, and would sort before older ones. As in a ZooKeeper
 * zxid, the high part is the epoch, which is the number of the restoration, and the low part is a revision. It is that of a put made
 * here and not the claim's own, because the claim's key has to contain the number: the sweep, also that of a node of an
 * older version, keeps what begins with a number that a held claim names.
 */
export async function nextFenceInEpoch(coordination: CoordinationStore, epoch: number): Promise<number> {
  // A put that is made twice, after a lost answer, only leaves out a number.
  const { revision } = await retryUntilAnswered(FENCE_TIMEOUT_MS, (timeoutMs) =>
    coordination.transact({ success: [{ op: 'put', key: FENCE_KEY, value: '' }] }, { timeoutMs }),
  );
  return epoch * FENCES_PER_EPOCH + revision;
}

/** The last restoration from a tile store; undefined where there was none. */
export async function latestRestore(objects: ObjectStore): Promise<RestoreRecord | undefined> {
  const name = await newestName(objects);
  return name === undefined ? undefined : (JSON.parse((await objects.get(name)).toString()) as RestoreRecord);
}

/** Records a restoration in the tile store: nodes of the former coordination store do not start any more. */
export async function startEpoch(
  objects: ObjectStore,
  coordination: string | undefined,
): Promise<Required<EpochDocument>> {
  const last = numberOf(await newestName(objects));
  const restoration: RestoreRecord = {
    id: randomUUID(),
    ...(coordination !== undefined && { coordination }),
  };
  const name = `${FOLDER}${`${last + 1}`.padStart(EPOCH_DIGITS, '0')}-${restoration.id}`;
  await objects.put(name, Buffer.from(JSON.stringify(restoration)));
  return { id: restoration.id, epoch: last + 1 };
}

const numberOf = (name: string | undefined) =>
  Number(name?.slice(FOLDER.length, FOLDER.length + EPOCH_DIGITS) ?? 0);

async function newestName(objects: ObjectStore): Promise<string | undefined> {
  let newest: string | undefined;
  for await (const { name } of objects.list(FOLDER)) newest = name;
  return newest;
}
