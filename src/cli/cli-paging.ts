import type { ItemCollection } from '../client/index.js';
import { mergePartial } from './output/index.js';

/** Items of a page. */
const PAGE_SIZE = 1000;

/** Follows the pages of a search until there are `limit` items or no more pages. */
export async function fetchAllPages(
  page: (limit: number, token: string | undefined) => Promise<ItemCollection>,
  limit = Infinity,
): Promise<ItemCollection> {
  let all: ItemCollection | undefined;
  let token: string | undefined;
  do {
    const next = await page(Math.min(PAGE_SIZE, limit - (all?.features.length ?? 0)), token);
    all = all ? { ...all, ...mergePartial(all, next), features: [...all.features, ...next.features] } : next;
    token = next.links.find((link) => link.rel === 'next')?.body?.token;
  } while (token && all.features.length < limit);
  return { ...all, numberReturned: all.features.length, links: [] };
}
