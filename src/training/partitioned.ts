/** The partitioned and the contained mode: a model for each place, stored as they come. */
import type { JobContext } from '../jobs/index.js';
import type { ModelVersionRecord } from '../storage/index.js';
import { chosenEngine } from './engine/select-engine.js';
import { DEFAULT_SEED, modelsOf, type TrainContext, type TrainInputs } from './inputs.js';
import type { TrainPart } from './merge.js';
import { PlaceTraining, type PlannedModel } from './place-training.js';
import { agreeOnSeeds, trainedSeeds } from './transfer/curriculum.js';
import type { Descent } from './transfer/lineage.js';
import { canBeParent, modelsToStartFrom, type ParentFinder, parentFinder } from './transfer/parents.js';

export async function trainPartitioned(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainPart> {
  const started = performance.now();
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
    const models = await modelsToStartFrom(context.storage, modelsOf(inputs), job.id);
    await training.train(planned, descentFrom(context, inputs, models));
  }
  results.seconds = (performance.now() - started) / 1000;
  return results;
}

/** One place of each cluster, then the others from the models of these. */
async function trainSeedsFirst(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  training: PlaceTraining,
  planned: PlannedModel[],
): Promise<void> {
  const { results } = training;
  job.message('choosing the first place of each cluster');
  const own = [...planned.map(({ model, place }) => ({ model, ...place })), ...results.models];
  const isSeed = await agreeOnSeeds(context.textures, own, job);
  const [seeds, others] = [true, false].map((first) =>
    planned.filter(({ model, place }) => isSeed({ model, ...place }) === first),
  ) as [PlannedModel[], PlannedModel[]];
  const isFirst: ParentFinder = async () => ({ none: 'it is the first of its cluster' });
  await training.train(
    seeds,
    descentOf(inputs, () => isFirst),
  );
  job.message('waiting for the first place of each cluster');
  const models = await trainedSeeds(context.storage, results.models.filter(isSeed), job);
  job.message('training the others');
  await training.train(others, descentFrom(context, inputs, models.filter(canBeParent)));
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
