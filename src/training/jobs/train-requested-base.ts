/** The base model that the inputs of a training name. */
import { type ModelVersionRecord, type Storage, versionsOf } from '../../storage/index.js';
import { baseNotUsable } from '../errors.js';
import type { CardSummary } from '../registry/index.js';

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
