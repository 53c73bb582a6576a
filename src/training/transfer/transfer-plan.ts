/** Source models of the cells of a job, and the record of their provenance. */
import { TilewrightError } from '../../errors.js';
import type { ModelVersionRecord, Storage } from '../../storage/index.js';
import { plural } from '../../utils/plural.js';
import type { TrainingCell } from '../data/index.js';
import type { FreezingSchedule } from '../learners/index.js';
import type { TransferPolicy, TransferProvenance } from '../registry/index.js';
import type { SourceModelFiles, WarmStartOptions, WarmStartResult } from '../warm-start/index.js';
import type { SourceModelFinder, SourceModelSearch } from './transfer-source-models.js';

/** How the cells of a job find the models that they start from. */
export interface TransferPlan {
  policy: Exclude<TransferPolicy, 'none'>;
  fineTuning: FreezingSchedule;
  /** Finders by kind of model. */
  finders: ReadonlyMap<string, SourceModelFinder>;
}

/** Source models of one cell: for the process that trains it, and for the provenance. */
export interface SourceCandidates {
  start?: WarmStartOptions;
  found: SourceModelSearch;
  refused: NonNullable<WarmStartResult['refused']>;
}

/** Finds the models that a cell may start from, and fetches their files. Throws temporary errors (503). */
export async function findSources(
  storage: Storage,
  { policy, finders }: TransferPlan,
  kind: string,
  cell: TrainingCell,
): Promise<SourceCandidates> {
  const found = await finders.get(kind)!(cell);
  if ('none' in found) return { found, refused: [] };
  const parents: SourceModelFiles[] = [];
  const refused: SourceCandidates['refused'] = [];
  for (const { model } of found.parents) {
    const { id } = model;
    try {
      parents.push(await sourceModelFiles(storage, model));
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      refused.push({ id, reason: error.message });
    }
  }
  return { found, refused, start: { parents, probe: policy === 'probe' } };
}

/** Fetches the files of a model. Throws the errors of `ensureFile`. */
export async function sourceModelFiles(
  storage: Storage,
  model: ModelVersionRecord,
): Promise<SourceModelFiles> {
  const { id, version } = model;
  const topology = await storage.models.ensureFile(model, 'model.json');
  return { id, version, topology, weights: await storage.models.ensureFile(model, 'weights.bin') };
}

/** Returns the provenance and the id of the parent. `start`: the result of the training process. */
export function transferProvenance(
  { policy, fineTuning }: TransferPlan,
  { found, refused: unread }: SourceCandidates,
  start: WarmStartResult = {},
): { parent: string | null; transfer: TransferProvenance } {
  const plan = { policy, fineTuning };
  if ('none' in found) return { parent: null, transfer: { ...plan, fresh: found.none } };
  const refused = [...unread, ...(start.refused ?? [])];
  const details = { ...(start.probed && { probed: start.probed }), ...(refused.length > 0 && { refused }) };
  const parent = found.parents.find(({ model }) => model.id === start.parent?.id);
  if (!parent) {
    const fresh = start.probed
      ? `none of ${plural(start.probed.length - 1, 'probed model')} is better on it than a fresh one`
      : refused.map(({ id, reason }) => `${id}: ${reason}`).join('; ');
    return { parent: null, transfer: { ...plan, fresh, ...details } };
  }
  const { id, version } = parent.model;
  return { parent: id, transfer: { ...plan, version, distance: parent.distance, ...details } };
}
