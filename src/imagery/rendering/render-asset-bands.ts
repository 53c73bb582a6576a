/** The parameters `assets` and `bidx` of maps. */

import { bandsOfAssets, type Expression } from '../../expressions/index.js';
import type { GroupRecord } from '../../storage/index.js';
import { badRenderParameter } from '../errors.js';

/**
 * The bands of assets as expressions. An asset is a band group or a band; `bidx` selects among all their bands, from 1. The default is the
 * first group. Throws TW_IMAGERY_BAND and TW_IMAGERY_LOOK.
 */
export function assetBands(
  groups: GroupRecord[],
  assets: string[] | undefined,
  bidx?: number[],
): Expression[] {
  const names = bandsOfAssets(groups, assets);
  const selected = bidx?.map((number) => {
    const name = names[number - 1];
    if (name === undefined)
      throw badRenderParameter('bidx', `${number} is not among the ${names.length} bands`);
    return name;
  });
  return (selected ?? names).map((name) => ({ kind: 'band', name, position: 0 }));
}
