/** All pages of a search. */
import type { ItemCollection } from '../client/index.js';
import { partlyOf } from './output/print.js';

/** Items asked for at once. */
const PAGE = 1000;

/** Follows the pages of a search until enough items are there. */
export async function everyPage(
  page: (limit: number, token: string | undefined) => Promise<ItemCollection>,
  limit = Infinity,
): Promise<ItemCollection> {
  let all: ItemCollection | undefined;
  let token: string | undefined;
  do {
    const next = await page(Math.min(PAGE, limit - (all?.features.length ?? 0)), token);
    all = all ? { ...all, ...partlyOf(all, next), features: [...all.features, ...next.features] } : next;
    token = next.links.find((link) => link.rel === 'next')?.body?.token;
  } while (token && all.features.length < limit);
  return { ...all, numberReturned: all.features.length, links: [] };
}
