/** From which models the places of a job start, and what is remembered of it. */
import { TilewrightError } from '../../errors.js';
import { plural } from '../../plural.js';
import type { Storage } from '../../storage/index.js';
import type { TrainingCell } from '../data/training-cells.js';
import type { FreezingSchedule } from '../loop/layer-freezing.js';
import type { SourceModelFinder, SourceModelSearch } from './source-models.js';
import type { TransferPolicy } from './transfer-policy.js';
import type { SourceModelFiles, WarmStartOptions, WarmStartResult } from './warm-start.js';

/** How the places of a job come to what they start from. */
export interface TransferPlan {
  policy: Exclude<TransferPolicy, 'none'>;
  fineTuning: FreezingSchedule;
  /** By the kind of model. */
  finders: ReadonlyMap<string, SourceModelFinder>;
}

/** How a model came to the weights that it started with. */
export interface TransferProvenance extends Omit<WarmStartResult, 'parent'> {
  policy: TransferPlan['policy'];
  fineTuning: FreezingSchedule;
  /** Of the parent. */
  version?: string;
  /** How unlike the parent's place looks, as `similar` has it. */
  distance?: number;
  /** Why it started fresh. */
  fresh?: string;
}

/** What was found for one place: for the process that trains it, and for the lineage. */
export interface SourceCandidates {
  start?: WarmStartOptions;
  found: SourceModelSearch;
  refused: NonNullable<WarmStartResult['refused']>;
}

/** Finds the models that a place may start from, and sees to it that their files are here. Throws what passes (503). */
export async function findSources(
  storage: Storage,
  { policy, finders }: TransferPlan,
  kind: string,
  place: TrainingCell,
): Promise<SourceCandidates> {
  const found = await finders.get(kind)!(place);
  if ('none' in found) return { found, refused: [] };
  const parents: SourceModelFiles[] = [];
  const refused: SourceCandidates['refused'] = [];
  for (const { model } of found.parents) {
    const { id, version } = model;
    try {
      const topology = await storage.models.ensureFile(model, 'model.json');
      parents.push({ id, version, topology, weights: await storage.models.ensureFile(model, 'weights.bin') });
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      refused.push({ id, reason: error.message });
    }
  }
  return { found, refused, start: { parents, probe: policy === 'probe' } };
}

/** What is remembered, with the id of the parent; `start` is what the process says that trained. */
export function transferProvenance(
  { policy, fineTuning }: TransferPlan,
  { found, refused: unread }: SourceCandidates,
  start: WarmStartResult = {},
): { parent: string | null; transfer: TransferProvenance } {
  const about = { policy, fineTuning };
  if ('none' in found) return { parent: null, transfer: { ...about, fresh: found.none } };
  const refused = [...unread, ...(start.refused ?? [])];
  const told = { ...(start.probed && { probed: start.probed }), ...(refused.length > 0 && { refused }) };
  const parent = found.parents.find(({ model }) => model.id === start.parent?.id);
  if (!parent) {
    const fresh = start.probed
      ? `of ${plural(start.probed.length - 1, 'probed model')} none is better on it than a fresh one`
      : refused.map(({ id, reason }) => `${id}: ${reason}`).join('; ');
    return { parent: null, transfer: { ...about, fresh, ...told } };
  }
  const { id, version } = parent.model;
  return { parent: id, transfer: { ...about, version, distance: parent.distance, ...told } };
}
