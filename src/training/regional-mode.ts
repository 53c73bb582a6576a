/** The regional mode: one base model for all cells, trained by all nodes, which each cell then adapts where its tiles are. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { selectEngineCached } from '../engines/index.js';
import type { JobContext } from '../jobs/index.js';
import {
  asStorageError,
  type ModelFileLocation,
  type ModelVersionRecord,
  type Storage,
  versionsOf,
} from '../storage/index.js';
import { trainedPixels } from './cells.js';
import { trainOneModel } from './distributed-mode.js';
import { baseNotUsable } from './errors.js';
import { readSampleMessages, type SampleMessage, sharingCells, writeSamples } from './fine-tuning.js';
import { type CardSummary, trainedOn } from './model-card.js';
import {
  type BaseVersion,
  type ModelResult,
  modelStoredByJob,
  requestedBase,
  verifyBaseFiles,
} from './model-store.js';
import { getModelSpec } from './models/builtin.js';
import type { ModelFiles } from './models/weights.js';
import type { AppliedHoldOut } from './patches.js';
import type { ModelChoice } from './report.js';
import {
  jobHeldOut,
  requestedModels,
  type TrainContext,
  type TrainInputs,
  trainingMode,
} from './train-inputs.js';
import type { PartialTrainResults } from './train-results.js';
import { type PlannedModel, TrainingRun } from './train-run.js';
import type { StaleSelection } from './train-stale.js';
import { awaitSeedModels, sourceModelFiles } from './transfer.js';
import type { SourceModelFiles } from './warm-start.js';

interface Sharing {
  model: string;
  /** Geocodes of all cells of this node that may share patches. */
  cells: string[];
  /** Returns samples of some cells of this node. */
  sample: (cells: ReadonlySet<string>, patches: number) => Promise<SampleMessage[]>;
}

/**
 * Exchanges training patches among the nodes of a region. Returns the path of a file with the samples of all nodes. Each node keeps its own
 * samples in a file, because a repeated run cannot sample the cells that are complete.
 */
export async function shareSamples(
  { storage }: { storage: Pick<Storage, 'dir' | 'scratch'> },
  job: Pick<JobContext, 'id' | 'allGather'>,
  { model, cells, sample }: Sharing,
): Promise<string> {
  const folder = await storage.scratch.makeForJob(job.id);
  const all = (await job.allGather(cells)).flat();
  const sharing = sharingCells(getModelSpec(model), all);
  const ownFile = join(folder, 'own-samples');
  let own = await readSampleMessages(ownFile);
  if (!own) {
    own = await sample(new Set(sharing.cells), sharing.patches);
    await toDisk(storage, writeSamples(ownFile, own));
  }
  const samples = (await job.allGather(own)).flat();
  // In a fixed order, because the order affects the weights.
  samples.sort((a, b) => (a.cell < b.cell ? -1 : a.cell > b.cell ? 1 : 0));
  const file = join(folder, 'samples');
  await toDisk(storage, writeSamples(file, samples));
  return file;
}

/** Waits for a write to the scratch folder. Throws TW_STORAGE_FULL and the other errors of the disk. */
async function toDisk<T>({ dir }: Pick<Storage, 'dir'>, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw asStorageError(error, dir);
  }
}

/** The base model as this node has it. */
interface BaseModel {
  /** Undefined if this node has no cell with enough patches, so that it took no part in the training. */
  files?: SourceModelFiles;
  /** The cells on which it was trained, with the ground that each held out. */
  cells: HeldOutCell[];
  /** Present if it reads history. */
  choice?: ModelChoice;
  /** The record of a base that the job did not train. */
  record?: ModelVersionRecord;
  /** Present on the node that stored it. */
  result?: ModelResult;
  /** The cells of this node without enough patches. */
  without?: Pick<PartialTrainResults, 'skipped' | 'failed'>;
}

type HeldOutCell = { geocode: string; holdOut?: AppliedHoldOut };

/** Parts of the progress: the base, and the fine-tuning with the storing of the models. */
const BASE_SHARE = 0.5;

/**
 * Runs the part of this node. All nodes train the base and share some training patches; each node adapts the base to its own cells. A
 * repeated run continues with the base and the cells that were complete. Throws TW_TRAIN_BASE and the errors of the distributed mode.
 */
export async function trainRegional(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  stale?: StaleSelection,
): Promise<PartialTrainResults> {
  const engine = await selectEngineCached(inputs.engine);
  const after = (share: number) => BASE_SHARE + (1 - BASE_SHARE) * share;
  const training = new TrainingRun(context, inputs, sharing(job, after), engine, stale);
  const { results } = training;
  job.partial(() => results);
  const base = await baseModel(context, inputs, job, stale?.base);
  if (base.result) results.base = base.result;
  if (base.files) results.basePlaces = base.cells.length;
  if (base.files && base.cells.length === 1)
    job.log('warning', 'the base model knows only one place: select more places, or another base');
  const planned = base.files ? await training.plan() : [];
  results.skipped.push(...(base.without?.skipped ?? []));
  results.failed.push(...(base.without?.failed ?? []));
  if (base.record) refuseOtherCells(base.record, planned);
  for (const one of planned)
    one.heldOut = base.cells.find(({ geocode }) => geocode === one.cell.geocode)?.holdOut?.window;
  // Nodes without cells do not know it.
  const choices = await job.allGather(base.choice ?? null);
  const choice = choices.find((one) => one !== null) ?? undefined;
  for (const { task } of planned)
    Object.assign(task, { history: choice?.history?.use ?? 'none', isShared: true });
  if (choice) {
    job.message('scoring the base model at each place');
    const step = { ...NO_ADAPTATION, hasChanged: stale !== undefined };
    if (base.files) await training.fineTune(planned, { base: base.files, choice, ...step });
    return results;
  }
  const known = new Set(base.cells.map(({ geocode }) => geocode));
  // Includes the cells that the job has stored, so that a repeated run has the same samples.
  const own = [...results.models.map(({ geocode }) => geocode), ...planned.map(({ cell }) => cell.geocode)];
  job.message('sharing patches of the places');
  const samples = await shareSamples(context, job, {
    model: requestedModels(inputs)[0],
    cells: own.filter((geocode) => known.has(geocode)),
    sample: async (cells, patches) =>
      base.files
        ? training.sample(
            planned.filter(({ cell }) => cells.has(cell.geocode)),
            { base: base.files, patches },
          )
        : [],
  });
  if (!base.files) return results;
  job.message('adapting the base model to each place');
  const ended = new Set([...results.skipped, ...results.failed].map(({ geocode }) => geocode));
  await training.fineTune(
    planned.filter(({ cell }) => !ended.has(cell.geocode)),
    { base: base.files, samples, withFresh: inputs.fresh ?? true, hasChanged: stale !== undefined },
  );
  return results;
}

/** A base that reads the history of its place knows what an adaptation would learn. */
const NO_ADAPTATION = { samples: '', withFresh: false };

/** Returns the context with shares of the progress mapped by `part`. */
const sharing = (job: JobContext, part: (share: number) => number): JobContext => ({
  ...job,
  progress: ({ share, ...counts }) =>
    job.progress({ ...counts, ...(share !== undefined && { share: part(share) }) }),
});

/** `chosen`: the base of a stale selection. */
async function baseModel(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  chosen?: BaseVersion,
): Promise<BaseModel> {
  const { storage } = context;
  const [kind] = requestedModels(inputs);
  const requested = inputs.base === undefined ? chosen : { id: inputs.base };
  if (requested) {
    const record = await requestedBase(storage, requested, kind);
    const heldOut = jobHeldOut(inputs);
    const date = heldOut && trainedOn(record.card as CardSummary, heldOut);
    if (date !== undefined)
      throw baseNotUsable(
        record.id,
        `it was trained on ${date}, which this training holds out; hold out other dates`,
      );
    await verifyBaseFiles(storage, record);
    return {
      files: await sourceModelFiles(storage, record),
      record,
      cells: cellsOf(record),
      ...choiceOf(record),
    };
  }
  const own = await basesOfJob(storage, kind, job.id);
  const [known] = (await job.allGather(own.map(({ id, version }) => ({ id, version })))).flat();
  if (known) {
    const [record] = await awaitSeedModels(storage, own, job);
    if (!record) throw baseNotUsable(known.id, 'it has not arrived on this node');
    const stored = await modelStoredByJob(storage, job.id, kind, record, 'distributed');
    const files = await sourceModelFiles(storage, record);
    return { files, result: stored?.model, cells: cellsOf(record), ...choiceOf(record) };
  }
  const before = sharing({ ...job, partial: () => {} }, (share) => BASE_SHARE * share);
  const { results, files, cells, choice } = await trainOneModel(
    context,
    { ...inputs, mode: 'distributed' },
    // The cells are counted in the adaptation.
    { ...before, progress: ({ share }) => before.progress({ share }) },
    true,
  );
  const [base] = (await job.allGather(results.models.map(({ id, version }) => ({ id, version })))).flat();
  const saved =
    base &&
    files &&
    (await toDisk(storage, saveFiles(await storage.scratch.makeForJob(job.id), base, files)));
  return {
    ...{ files: saved, result: results.models[0], cells },
    ...(choice && { choice }),
    ...(!saved && { without: results }),
  };
}

function choiceOf({ card }: ModelVersionRecord): Pick<BaseModel, 'choice'> {
  const { choice } = card as CardSummary;
  return choice?.history ? { choice } : {};
}

/** Returns the inputs that repeat a job that failed or was cancelled: its places adapt the base that it has stored, if there is one. */
export async function withBaseOfJob(
  storage: Storage,
  inputs: TrainInputs,
  job: string,
): Promise<TrainInputs> {
  if (trainingMode(inputs) !== 'regional' || inputs.base !== undefined) return inputs;
  const [base] = await basesOfJob(storage, requestedModels(inputs)[0], job);
  return base ? { ...inputs, base: base.id } : inputs;
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

/** Returns the cells that a base was trained on. Throws TW_TRAIN_BASE if it is not known which ground each held out. */
function cellsOf({ id, card }: ModelVersionRecord): HeldOutCell[] {
  const cells = (card as CardSummary).distributed!.places;
  if (!cells.every((cell) => cell.holdOut?.window))
    throw baseNotUsable(
      id,
      'its card does not say which ground it held out, because an older version trained it',
    );
  return cells;
}

/** Throws TW_TRAIN_BASE if the bands or values of a cell may differ from those of the base. */
function refuseOtherCells(
  { id, model, collection, grid, card }: ModelVersionRecord,
  planned: PlannedModel[],
): void {
  const { values = 'reflectance', pixelSize } = card as CardSummary;
  for (const { cell } of planned) {
    if (cell.collection !== collection || cell.grid !== grid)
      throw baseNotUsable(
        id,
        `it was trained on ${collection} (${grid}), but ${cell.geocode} belongs to ${cell.collection} (${cell.grid})`,
      );
    const own = trainedPixels(getModelSpec(model), cell);
    const differs = own.values !== values || (pixelSize && own.pixelSize?.group !== pixelSize.group);
    if (differs)
      throw baseNotUsable(
        id,
        `it was trained on ${values} of ${pixelSize?.group ?? 'several pixel sizes'}, but ${cell.geocode} has ${own.values} of ${own.pixelSize?.group}`,
      );
  }
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
