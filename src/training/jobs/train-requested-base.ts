/** The base model that the inputs of a training name. */
import { messageOf } from '../../errors.js';
import {
  type ModelVersionRecord,
  modelDamaged,
  type Storage,
  storeCorrupt,
  storeLost,
  versionsOf,
} from '../../storage/index.js';
import { baseNotUsable } from '../errors.js';
import type { CardSummary } from '../registry/index.js';

/** Errors of the files of one model. Others, such as those of a store that does not answer, do not show that the base is unusable. */
const UNUSABLE = [modelDamaged, storeLost, storeCorrupt];

export interface BaseVersion {
  id: string;
  version: string;
}

/** Returns the version of a base, by default its newest one. Throws TW_TRAIN_BASE. */
export async function requestedBase(
  storage: Storage,
  { id, version }: Partial<BaseVersion> & { id: string },
  kind: string,
): Promise<ModelVersionRecord> {
  const record = await storage.models.get(id);
  if (!record) throw baseNotUsable(id, 'no model has this id; "tilewright models" lists the models');
  if (record.model !== kind) throw baseNotUsable(id, `it is a model ${record.model}, not ${kind}`);
  // The base of a single cell has the id of the model of that cell. Other models do not list all cells that they have learned from.
  const bases = versionsOf(record).filter(({ card }) => (card as CardSummary).mode === 'distributed');
  const base = version === undefined ? bases[0] : bases.find((one) => one.version === version);
  if (!base && version !== undefined) throw baseNotUsable(id, `its version ${version} is not on this node`);
  if (!base)
    throw baseNotUsable(id, 'it is the model of one place, not of a distributed or regional training');
  return base;
}

/** Throws TW_TRAIN_BASE if a file of the base is missing or damaged: otherwise each place would read its tiles before it fails. */
export async function verifyBaseFiles(
  { models }: Pick<Storage, 'models'>,
  base: ModelVersionRecord,
): Promise<void> {
  try {
    await models.readFile(base, 'model.json');
    await models.readFile(base, 'weights.bin');
  } catch (error) {
    if (UNUSABLE.some((one) => one.is(error))) throw baseNotUsable.because(error, base.id, messageOf(error));
    throw error;
  }
}
