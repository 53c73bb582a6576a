/** The `check` process of the job system: finds the places whose models no longer keep what their cards promise. */
import { ENGINE_NAMES } from '../../engines/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import { checkFilter, filterSchema, requireCollections } from '../../query/index.js';
import { COUNT, listOf, objectOf } from '../../utils/json-schema.js';
import { plural } from '../../utils/text.js';
import { MODEL_NAMES } from '../models/builtin.js';
import { comparePlaces, judgePlaces, MEASURED_PLACE, type PlaceFreshness } from './judgement.js';
import { type CheckContext, type CheckInputs, type CheckPart, measurePlaces } from './measurement.js';

export interface CheckResults {
  /** Numbers of places by status. */
  fresh: number;
  drifted: number;
  unknown: number;
  /** Number of places without a model of their own. */
  without: number;
  /** The first places: drifted, unknown and fresh ones, each the worst first. */
  places: PlaceFreshness[];
}

/** Maximum number of places in the results. */
const MAX_PLACES = 1000;

const PLACE_COUNT = { type: 'integer' };
const OUTPUTS = {
  fresh: { title: 'Places whose models are as good as promised', schema: PLACE_COUNT },
  drifted: { title: 'Places whose errors have grown', schema: PLACE_COUNT },
  unknown: { title: 'Places that cannot be judged', schema: PLACE_COUNT },
  without: { title: 'Places without a model of their own', schema: PLACE_COUNT },
  places: {
    title: 'The first places, the worst first, with status, reason, first drifted date, and errors',
    schema: listOf({ type: 'object' }),
  },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

export function checkProcess(context: CheckContext): Process {
  return {
    id: 'check',
    title: 'Check models',
    description:
      'Compares the errors of the models of places on new dates with those of their training, and lists the places that have drifted. Stores nothing.',
    inputs: {
      type: 'object',
      required: ['model'],
      additionalProperties: false,
      properties: {
        model: { enum: MODEL_NAMES, description: 'Kind of model; the latest model of each place is checked' },
        filter: filterSchema,
        engine: { enum: ENGINE_NAMES },
      },
    },
    outputs: OUTPUTS,
    resumable: true,
    check: checkFilter,
    merge: (parts) => checkResults(parts as CheckPart[]),
    part: objectOf({ places: listOf(MEASURED_PLACE), without: COUNT }),
    run: async (given, job) => {
      const inputs = given as CheckInputs;
      await requireCollections(context.storage, inputs.filter);
      const part: CheckPart = { places: [], without: 0 };
      job.partial(() => part);
      return measurePlaces(context, inputs, job, part);
    },
    conclude: (results, job) => conclude(results as CheckResults, job),
  };
}

export function checkResults(parts: CheckPart[]): CheckResults {
  const judged = judgePlaces(parts.flatMap(({ places }) => places));
  const count = (status: PlaceFreshness['status']) =>
    judged.filter((place) => place.status === status).length;
  return {
    fresh: count('fresh'),
    drifted: count('drifted'),
    unknown: count('unknown'),
    without: parts.reduce((sum, { without }) => sum + without, 0),
    places: judged.sort(byBadness).slice(0, MAX_PLACES),
  };
}

const WORST_FIRST: PlaceFreshness['status'][] = ['drifted', 'unknown', 'fresh'];

function byBadness(a: PlaceFreshness, b: PlaceFreshness): number {
  return (
    WORST_FIRST.indexOf(a.status) - WORST_FIRST.indexOf(b.status) ||
    (b.ratio ?? 0) - (a.ratio ?? 0) ||
    comparePlaces(a, b)
  );
}

function conclude(
  { fresh, drifted, unknown, places }: CheckResults,
  job: Pick<JobContext, 'message' | 'log'>,
) {
  for (const { status, geocode, ratio, firstDrifted } of places)
    if (status === 'drifted')
      job.log(
        'warning',
        `${geocode} has drifted since ${firstDrifted}: ${ratio!.toFixed(1)} times the promised error`,
      );
  job.message(
    `${plural(fresh + drifted + unknown, 'place')}: ${fresh} fresh, ${drifted} drifted, ${unknown} unknown`,
  );
}
