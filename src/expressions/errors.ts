/** Errors of band expressions. */
import { defineError } from '../errors.js';

export const badExpression = defineError(
  'TW_IMAGERY_EXPRESSION',
  400,
  'An expression cannot be parsed. The message names the position and what was expected there.',
  (position: number, why: string) => `the expression cannot be read at character ${position + 1}: ${why}`,
);

export const unknownBand = defineError(
  'TW_IMAGERY_BAND',
  400,
  'An expression or a list of assets names a band that the tiles do not have. The message lists their bands, or names the band nearest to a wavelength.',
  (name: string, detail: string) => `there is no band "${name}"; ${detail}`,
);

const MAX_LISTED = 40;

/** Lists bands for the message of `unknownBand`. Cubes have hundreds of bands, so the list is shortened. */
export function listBands(names: string[]): string {
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `there are ${names.slice(0, MAX_LISTED).join(', ')}${more}`;
}
