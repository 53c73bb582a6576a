/** Processes that derive tiles: resumable, with one set of results. */
import type { JobContext, Process } from '../../jobs/index.js';
import { firstReasons, mergeCounts, sumOf, TILE_COUNTS_SCHEMA } from '../../jobs/index.js';
import { checkFilter, filterSchema } from '../../query/index.js';
import { COUNT, objectOf, TEXT } from '../../utils/json-schema.js';
import { noTileDerived } from '../errors.js';
import {
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  type TileProcessContext,
} from './derive-tiles-job.js';

interface DeriveProcess<Inputs> extends Pick<Process, 'id' | 'title' | 'description'> {
  /** JSON Schemas of the inputs beside `filter`. */
  properties: object;
  required?: string[];
  /** Why a task may make no tile. */
  reasonForNone: string;
  /** Yields the tiles to make in the cells of this run. */
  plan(
    context: TileProcessContext,
    inputs: Inputs,
    isMine: JobContext['isMine'],
  ): AsyncIterable<PlannedDerivation> | Promise<AsyncIterable<PlannedDerivation>>;
}

export function deriveProcess<Inputs>(
  context: TileProcessContext,
  { properties, required = [], reasonForNone, plan, ...about }: DeriveProcess<Inputs>,
): Process {
  return {
    ...about,
    inputs: {
      type: 'object',
      required,
      additionalProperties: false,
      properties: { filter: filterSchema, ...properties },
    },
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    run: async (inputs, job) =>
      deriveTiles(context, await plan(context, inputs as Inputs, job.isMine), job, reasonForNone),
  };
}

/** JSON Schema of `DeriveResults`. */
export const DERIVE_RESULTS = objectOf(
  { ...TILE_COUNTS_SCHEMA, unchanged: COUNT },
  { removed: COUNT, bytesFetched: COUNT, examples: { type: 'object', additionalProperties: TEXT } },
);

/**
 * Members of a process that derives tiles. A run does not repeat finished tiles, so a job can be resumed and its failures retried. Each
 * node makes the tiles of its own cells.
 */
export const RESUMABLE_PROCESS = {
  resumable: true,
  retryInputs: async (inputs: unknown, results: unknown) =>
    (results as DeriveResults).failures > 0 ? inputs : null,
  merge: (parts: unknown[]) => mergeResults(parts as DeriveResults[]),
  part: DERIVE_RESULTS,
  conclude: (results: unknown, context: Pick<JobContext, 'message'>) =>
    concludeResults(results as DeriveResults, context),
} satisfies Partial<Process>;

function mergeResults(parts: DeriveResults[]): DeriveResults {
  const removed = sumOf(parts, ({ removed = 0 }) => removed);
  const examples: DeriveResults['examples'] = Object.assign({}, ...parts.map((part) => part.examples));
  return {
    ...mergeCounts(parts),
    ...(Object.keys(examples!).length > 0 && { examples }),
    unchanged: sumOf(parts, ({ unchanged }) => unchanged),
    ...(removed > 0 && { removed }),
  };
}

/** Throws TW_WRANGLE_ALL_FAILED if tiles failed and no tile exists. */
function concludeResults(results: DeriveResults, { message }: Pick<JobContext, 'message'>): void {
  const { tiles, unchanged, failures } = results;
  message(`${tiles} made, ${unchanged} unchanged, ${failures} failed`);
  if (failures > 0 && tiles + unchanged === 0) throw noTileDerived(failures, firstReasons(results));
}
