/** The partitioned and the contained mode: a model for each place, stored as they come. */

import { chosenEngine } from '../../engines/index.js';
import type { JobContext } from '../../jobs/index.js';
import type { ModelVersionRecord } from '../../storage/index.js';
import { agreeOnSeeds, trainedSeeds } from '../transfer/cluster-seeds.js';
import type { Descent } from '../transfer/provenance.js';
import {
  canBeParent,
  modelsToStartFrom,
  type ParentFinder,
  parentFinder,
} from '../transfer/source-models.js';
import type { TrainPart } from './merge-results.js';
import { DEFAULT_SEED, modelsOf, type TrainContext, type TrainInputs } from './train-options.js';
import { PlaceTraining, type PlannedModel } from './training-run.js';

export async function trainPartitioned(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainPart> {
  job.message('choosing an engine');
  const engine = await chosenEngine(inputs.engine);
  job.signal.throwIfAborted();
  const training = new PlaceTraining(context, inputs, job, engine);
  const { results } = training;
  job.partial(() => results);
  const planned = await training.plan();
  const { transfer = 'none', curriculum = false } = inputs;
  if (transfer === 'none') await training.train(planned);
  else if (curriculum) await trainSeedsFirst(context, inputs, job, training, planned);
  else {
    const models = await modelsToStartFrom(context.storage, modelsOf(inputs), job);
    await training.train(planned, descentFrom(context, inputs, models));
  }
  return results;
}

/** One place of each cluster, then the others from the models of these. Where a place cannot be trained, the next of its cluster is the first. */
async function trainSeedsFirst(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  training: PlaceTraining,
  planned: PlannedModel[],
): Promise<void> {
  const { storage, textures } = context;
  const isFirst: ParentFinder = async () => ({ none: 'it is the first of its cluster' });
  const seeds: ModelVersionRecord[] = [];
  let left = planned;
  // What the job had stored before it was cut off.
  let stored = training.results.models.slice();
  for (;;) {
    job.message('training the first place of each cluster');
    const offered = [...left.map(({ model, place }) => ({ model, ...place })), ...stored];
    const isSeed = await agreeOnSeeds(textures, offered, seeds, job);
    if (!isSeed) break;
    const isNext = ({ model, place }: PlannedModel) => isSeed({ model, ...place });
    await training.train(
      left.filter(isNext),
      descentOf(inputs, () => isFirst),
    );
    left = left.filter((one) => !isNext(one));
    stored = stored.filter((one) => !isSeed(one));
    const own = training.results.models.filter(isSeed).map(({ id, version }) => ({ id, version }));
    const trained = await trainedSeeds(storage, own, job);
    seeds.push(...trained.filter(canBeParent));
  }
  job.message('training the other places');
  await training.train(left, descentFrom(context, inputs, seeds));
}

function descentFrom({ textures }: TrainContext, inputs: TrainInputs, models: ModelVersionRecord[]): Descent {
  const { seed = DEFAULT_SEED } = inputs;
  return descentOf(inputs, (kind, policy) =>
    parentFinder(
      textures,
      models.filter(({ model }) => model === kind),
      policy,
      seed,
    ),
  );
}

/** Of inputs that ask for a transfer. */
function descentOf(
  inputs: TrainInputs,
  finderOf: (kind: string, policy: Descent['policy']) => ParentFinder,
): Descent {
  const policy = inputs.transfer as Descent['policy'];
  const finders = new Map(modelsOf(inputs).map((kind) => [kind, finderOf(kind, policy)]));
  return { policy, fineTuning: inputs.fineTuning ?? 'all', finders };
}
