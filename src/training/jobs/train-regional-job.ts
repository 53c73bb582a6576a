/** The regional mode: one base model for all cells, trained by all nodes, which each cell then adapts where its tiles are. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { selectEngineCached } from '../../engines/index.js';
import type { JobContext } from '../../jobs/index.js';
import {
  type ModelFileLocation,
  type ModelVersionRecord,
  type Storage,
  versionsOf,
} from '../../storage/index.js';
import { plural } from '../../utils/plural.js';
import { estimateShrinkage, type UpdateAgreement } from '../adaptation/index.js';
import { baseNotUsable } from '../errors.js';
import type { ModelFiles } from '../models/index.js';
import { type CardSummary, type ModelResult, modelStoredByJob } from '../registry/index.js';
import { awaitSeedModels } from '../transfer/index.js';
import type { SourceModelFiles } from '../warm-start/index.js';
import { trainOneModel } from './train-distributed-job.js';
import { requestedModels, type TrainContext, type TrainInputs } from './train-job-inputs.js';
import type { PartialTrainResults } from './train-job-merge.js';
import { type PlannedModel, TrainingRun } from './train-job-run.js';

/** The base model as this node has it. */
interface BaseModel {
  /** Undefined if this node has no cell with enough patches, so that it took no part in the training. */
  files?: SourceModelFiles;
  /** The record of a base that the job did not train. */
  record?: ModelVersionRecord;
  /** Present on the node that stored it. */
  result?: ModelResult;
  /** The cells of this node without enough patches. */
  without?: Pick<PartialTrainResults, 'skipped' | 'failed'>;
}

/**
 * Runs the part of this node. All nodes train the base; each fine-tunes it at its own cells; all agree on one shrinkage; each stores the
 * models of its cells. A repeated run continues with the base and the cells that were complete. Throws TW_TRAIN_BASE and the errors of
 * the distributed mode.
 */
export async function trainRegional(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<PartialTrainResults> {
  const engine = await selectEngineCached(inputs.engine);
  const base = await baseModel(context, inputs, job);
  const training = new TrainingRun(context, inputs, job, engine);
  const { results } = training;
  if (base.result) results.base = base.result;
  job.partial(() => results);
  job.progress({ share: 0, anew: true });
  const planned = base.files ? await training.plan() : [];
  if (!base.files) {
    results.skipped.push(...(base.without?.skipped ?? []));
    results.failed.push(...(base.without?.failed ?? []));
  }
  if (base.record) refuseOtherCells(base.record, planned);
  job.message('fine-tuning the base model at each place');
  const tuned = base.files
    ? await training.fineTune(planned, { base: base.files, withFresh: inputs.fresh ?? true })
    : [];
  const all = (await job.allGather<UpdateAgreement[]>(tuned.map(({ agreement }) => agreement))).flat();
  if (all.length === 0) return results;
  const shrinkage = estimateShrinkage(all);
  job.log('info', describeShrinkage(shrinkage, all.length));
  job.message('storing the models of the places');
  await training.interpolate(tuned, shrinkage);
  return results;
}

const describeShrinkage = (shrinkage: number, cells: number) =>
  Number.isFinite(shrinkage)
    ? `from ${plural(cells, 'place')}: a place with ${Math.round(shrinkage)} patches would keep half of its fine-tuning`
    : `from ${plural(cells, 'place')}: the halves of the places do not agree, so all places keep the base model`;

async function baseModel(context: TrainContext, inputs: TrainInputs, job: JobContext): Promise<BaseModel> {
  const { storage } = context;
  const [kind] = requestedModels(inputs);
  if (inputs.base !== undefined) {
    const record = await requestedBase(storage, inputs.base, kind);
    return { files: await filesOf(storage, record), record };
  }
  const own = await basesOfJob(storage, kind, job.id);
  const [known] = (await job.allGather(own.map(({ id, version }) => ({ id, version })))).flat();
  if (known) {
    const [record] = await awaitSeedModels(storage, own, job);
    if (!record) throw baseNotUsable(known.id, 'it has not arrived on this node');
    const stored = await modelStoredByJob(storage, job.id, kind, record, 'distributed');
    return { files: await filesOf(storage, record), result: stored?.model };
  }
  const { results, files } = await trainOneModel(context, { ...inputs, mode: 'distributed' }, job, true);
  const [base] = (await job.allGather(results.models.map(({ id, version }) => ({ id, version })))).flat();
  const saved = base && files && (await saveFiles(await storage.scratch.makeForJob(job.id), base, files));
  return { files: saved, result: results.models[0], without: results };
}

/** Returns the base models that a job has stored; at most one. */
async function basesOfJob(storage: Storage, kind: string, job: string): Promise<ModelVersionRecord[]> {
  const found: ModelVersionRecord[] = [];
  for await (const { record } of storage.models.scanAll()) {
    if (record?.model !== kind) continue;
    for (const version of versionsOf(record)) {
      const card = version.card as CardSummary;
      if (card.job === job && card.mode === 'distributed') found.push(version);
    }
  }
  return found;
}

/** Throws TW_TRAIN_BASE. */
async function requestedBase(storage: Storage, id: string, kind: string): Promise<ModelVersionRecord> {
  const record = await storage.models.get(id);
  if (!record) throw baseNotUsable(id, 'there is no such model; "tilewright models" lists them');
  if (record.model !== kind) throw baseNotUsable(id, `it is a model ${record.model}, not ${kind}`);
  return record;
}

/** Throws TW_TRAIN_BASE if a cell belongs to another collection than the base, whose bands and values may differ. */
function refuseOtherCells({ id, collection, grid }: ModelVersionRecord, planned: PlannedModel[]): void {
  const other = planned.find(({ cell }) => cell.collection !== collection || cell.grid !== grid);
  if (!other) return;
  const { cell } = other;
  throw baseNotUsable(
    id,
    `it was trained on ${collection} (${grid}), but ${cell.geocode} belongs to ${cell.collection} (${cell.grid})`,
  );
}

async function filesOf(storage: Storage, model: ModelVersionRecord): Promise<SourceModelFiles> {
  const { id, version } = model;
  const topology = await storage.models.ensureFile(model, 'model.json');
  return { id, version, topology, weights: await storage.models.ensureFile(model, 'weights.bin') };
}

/** Writes the files of a base model that is perhaps not stored into a folder. */
async function saveFiles(
  folder: string,
  model: { id: string; version: string },
  files: ModelFiles,
): Promise<SourceModelFiles> {
  const save = async (name: keyof ModelFiles): Promise<ModelFileLocation> => {
    const bytes = files[name];
    const path = join(folder, `base-${name}`);
    await writeFile(path, bytes);
    return { path, file: { name: String(name), bytes: bytes.length, crc32: crc32(bytes) }, model };
  };
  return { ...model, topology: await save('model.json'), weights: await save('weights.bin') };
}
