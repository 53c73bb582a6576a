/** Inputs that all analyses share. */

import { checkFilter, type FilterParams, filterBody, filterSchema } from '../../query/index.js';
import { documented } from '../../utils/json-schema.js';
import { oneCollection } from '../errors.js';

export const DEFAULT_SEED = 1;

/** JSON Schema of an integer input. */
export const integer = (
  minimum: number,
  maximum: number,
  more: { default?: number; description?: string } = {},
) => ({ type: 'integer', minimum, maximum, ...more });

/** JSON Schema of the seed of pseudorandom numbers. */
export const SEED = integer(0, 2 ** 32 - 1, { default: DEFAULT_SEED });

export interface AnalysisInputs {
  /** Names exactly one collection. */
  filter: FilterParams;
  /** Bands by name or wavelength. Default: all good bands that hold data. */
  bands?: string[];
}

export const ANALYSIS_PROPERTIES = {
  filter: documented(
    { ...filterSchema, required: ['collections'] },
    // One collection: a name, or a list of one name.
    {
      properties: {
        ...filterBody,
        collections: {
          anyOf: [
            { type: 'string', pattern: '^[^,]*[^\\s,][^,]*$' },
            {
              type: 'array',
              minItems: 1,
              maxItems: 1,
              items: { type: 'string', pattern: '^[^,]*[^\\s,][^,]*$' },
            },
          ],
        },
      },
    },
  ),
  bands: {
    type: 'array',
    items: { type: 'string', minLength: 1, maxLength: 200 },
    minItems: 1,
    maxItems: 1000,
    description: 'Bands by name or by wavelength, such as 860nm. Default: all good bands that hold data',
  },
};

/** Throws TW_ANALYSIS_COLLECTION unless the filter names one collection, and the errors of filters. */
export function checkAnalysis(inputs: unknown): void {
  checkFilter(inputs);
  collectionOf(inputs as AnalysisInputs);
}

export function collectionOf({ filter }: AnalysisInputs): string {
  const named = [filter.collections ?? []].flat().flatMap((names) => String(names).split(','));
  if (named.length !== 1) throw oneCollection(named.length);
  return named[0];
}
