/** Identifies what an Item and the options of an ingest say, so that an Item that has not changed is skipped without a request. */
import { createHash } from 'node:crypto';
import { type RemoteItem, withoutSignature } from '../../remote/index.js';
import type { IngestOptions } from '../ingest-options.js';
import { chooseAssets } from './choose-item-assets.js';

/** Increment it if the same Item would result in other tiles. */
const VERSION = 2;

/** Digest of the Item, the chosen assets, and the options that affect tiles. The region does not count. */
export function itemDigest(item: RemoteItem, options: IngestOptions, assets?: readonly string[]): string {
  const { bbox: _, dryRun: __, ...others } = options;
  const files = chooseAssets(item, { names: assets }).map(({ key, url, asset }) => {
    const { href: _, alternate: __, ...description } = asset;
    return [key, withoutSignature(url), description];
  });
  const { properties } = item.document;
  const said = [VERSION, item.id, item.collection, properties, files, sorted(others)];
  return createHash('sha256').update(JSON.stringify(said)).digest('hex');
}

const sorted = (options: object) => Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));
