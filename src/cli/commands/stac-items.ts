/** Reads the Items of a JSON file for a job. */
import { readFile } from 'node:fs/promises';
import { messageOf } from '../../errors.js';
import { selectItems } from '../../ingest/index.js';
import { parseJson } from '../../utils/json-text.js';
import { notItems } from '../errors.js';

/** A request has 1 MB at most. */
const MAX_ITEMS_BYTES = 900_000;

/** Returns the Items of a file that match, with the given assets only. Throws TW_CLI_NOT_ITEMS. */
export async function readStacItems(
  path: string,
  query: Parameters<typeof selectItems>[1],
  assets: string[] | undefined,
): Promise<Record<string, unknown>[]> {
  const items = selectItems(await readDocuments(path), query, assets);
  if (items.length === 0) throw notItems(path, 'no Item in it matches the search');
  const bytes = Buffer.byteLength(JSON.stringify(items));
  if (bytes > MAX_ITEMS_BYTES)
    throw notItems(
      path,
      `${items.length} Items match, which are ${(bytes / 1e6).toFixed(1)} MB, and ${MAX_ITEMS_BYTES / 1e6} MB can be sent; select fewer Items or --bands, or name the file by a URL`,
    );
  return items;
}

async function readDocuments(path: string): Promise<Record<string, unknown>[]> {
  try {
    const document = parseJson(await readFile(path, 'utf8')) as Record<string, unknown> | null;
    if (document?.type === 'Feature') return [document];
    if (document?.type === 'FeatureCollection' && Array.isArray(document.features)) return document.features;
  } catch (error) {
    throw notItems.because(error, path, messageOf(error));
  }
  throw notItems(path, 'it is neither a STAC Item nor an ItemCollection');
}
