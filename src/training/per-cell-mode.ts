/** The partitioned and the contained mode: one model for each cell, stored as soon as it is trained. */
import { selectEngineCached } from '../engines/index.js';
import type { JobContext } from '../jobs/index.js';
import type { ModelVersionRecord } from '../storage/index.js';
import {
  DEFAULT_SEED,
  jobHeldOut,
  requestedModels,
  type TrainContext,
  type TrainInputs,
} from './train-inputs.js';
import type { PartialTrainResults } from './train-results.js';
import { type PlannedModel, TrainingRun } from './train-run.js';
import type { StaleSelection } from './train-stale.js';
import {
  availableSourceModels,
  awaitSeedModels,
  electClusterSeeds,
  isUsableSource,
  type SourceModelFinder,
  sourceModelFinder,
  type TransferPlan,
} from './transfer.js';

export async function trainPerCell(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  stale?: StaleSelection,
): Promise<PartialTrainResults> {
  job.message('choosing an engine');
  const engine = await selectEngineCached(inputs.engine);
  job.signal.throwIfAborted();
  const training = new TrainingRun(context, inputs, job, engine, stale);
  const { results } = training;
  job.partial(() => results);
  const planned = await training.plan();
  const { transfer = 'none', curriculum = false } = inputs;
  if (transfer === 'none') await training.train(planned);
  else if (curriculum) await trainSeedsFirst(context, inputs, job, training, planned);
  else {
    const models = await availableSourceModels(context.storage, requestedModels(inputs), job, {
      heldOut: jobHeldOut(inputs),
    });
    await training.train(planned, transferPlanFrom(context, inputs, models));
  }
  return results;
}

/**
 * Trains one cell of each cluster, then the others from these models. If a cell cannot be trained, the next of its cluster is the seed.
 */
async function trainSeedsFirst(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  training: TrainingRun,
  planned: PlannedModel[],
): Promise<void> {
  const { storage, textures } = context;
  const isFirst: SourceModelFinder = async () => ({ none: 'chosen as representative of a cluster' });
  const seeds: ModelVersionRecord[] = [];
  let left = planned;
  // Models that the job stored before it was interrupted.
  let stored = training.results.models.slice();
  for (;;) {
    job.message('training the representatives of the clusters');
    const offered = [...left.map(({ model, cell }) => ({ model, ...cell })), ...stored];
    const isSeed = await electClusterSeeds(textures, offered, seeds, job);
    if (!isSeed) break;
    const isNext = ({ model, cell }: PlannedModel) => isSeed({ model, ...cell });
    await training.train(
      left.filter(isNext),
      transferPlan(inputs, () => isFirst),
    );
    left = left.filter((one) => !isNext(one));
    stored = stored.filter((one) => !isSeed(one));
    const own = training.results.models.filter(isSeed).map(({ id, version }) => ({ id, version }));
    const trained = await awaitSeedModels(storage, own, job);
    seeds.push(...trained.filter(isUsableSource));
  }
  job.message('training the other places');
  await training.train(left, transferPlanFrom(context, inputs, seeds));
}

function transferPlanFrom(
  { textures }: TrainContext,
  inputs: TrainInputs,
  models: ModelVersionRecord[],
): TransferPlan {
  const { seed = DEFAULT_SEED } = inputs;
  return transferPlan(inputs, (kind, policy) =>
    sourceModelFinder(
      textures,
      models.filter(({ model }) => model === kind),
      policy,
      seed,
    ),
  );
}

/** For inputs that request a transfer. */
function transferPlan(
  inputs: TrainInputs,
  finderOf: (kind: string, policy: TransferPlan['policy']) => SourceModelFinder,
): TransferPlan {
  const policy = inputs.transfer as TransferPlan['policy'];
  const finders = new Map(requestedModels(inputs).map((kind) => [kind, finderOf(kind, policy)]));
  return { policy, fineTuning: inputs.fineTuning ?? 'all', finders };
}
