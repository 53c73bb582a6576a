/** The base model that the inputs of a training name. */
import { type ModelVersionRecord, type Storage, versionsOf } from '../../storage/index.js';
import { baseNotUsable } from '../errors.js';
import type { CardSummary } from '../registry/index.js';

/** Throws TW_TRAIN_BASE. */
export async function requestedBase(storage: Storage, id: string, kind: string): Promise<ModelVersionRecord> {
  const record = await storage.models.get(id);
  if (!record) throw baseNotUsable(id, 'no model has this id; "tilewright models" lists the models');
  if (record.model !== kind) throw baseNotUsable(id, `it is a model ${record.model}, not ${kind}`);
  // The base of a single cell has the id of the model of that cell. Other models do not list all cells that they have learned from.
  const base = versionsOf(record).find(({ card }) => (card as CardSummary).mode === 'distributed');
  if (!base)
    throw baseNotUsable(id, 'it is the model of one place, not of a distributed or regional training');
  return base;
}
