/** The scenes of a STAC catalog on the internet that a job ingests. */
import { rm } from 'node:fs/promises';
import { gridByName } from '../../grid/index.js';
import type { JobContext } from '../../jobs/index.js';
import { parseDatetime } from '../../query/index.js';
import {
  checkUrl,
  findItems,
  type HostPolicy,
  HttpClient,
  type RemoteItem,
  type StacQuery,
  withoutSecrets,
} from '../../remote/index.js';
import type { Storage } from '../../storage/index.js';
import { slugify } from '../formats/shared/index.js';
import type { IngestOptions } from '../ingest-options.js';
import { isRegionKnown, regionFilter, type ScenePlan } from '../plan/index.js';
import {
  fetchItem,
  fetchRanges,
  itemDigest,
  planFetch,
  type RemoteFiles,
  withFetchedBlocks,
} from '../remote/index.js';
import type { SceneResult } from './ingest-scene.js';

/** A search in a STAC catalog. */
export interface StacSource extends Omit<StacQuery, 'bbox'> {
  /** A STAC API, a static catalog, an ItemCollection or an Item. */
  url: string;
  /** Keys or bands of the assets that are read; all with data if absent. */
  assets?: string[];
}

export const NO_HOSTS: HostPolicy = { hosts: [], anyPublic: false };

/** Throws the errors of `checkUrl` and `parseDatetime` for a search that can never succeed. */
export function checkStacSource({ url, datetime }: StacSource, hosts: HostPolicy = NO_HOSTS): void {
  checkUrl(url, hosts);
  if (datetime !== undefined) parseDatetime(datetime, { dates: 'periods' });
}

/** An Item whose files are open. */
export interface OpenItem {
  item: RemoteItem;
  folder: string;
  files: RemoteFiles;
  digest: string;
}

export class RemoteScenes {
  private readonly client: HttpClient;

  constructor(
    private readonly storage: Storage,
    policy: HostPolicy,
    private readonly source: StacSource,
    private readonly options: IngestOptions,
    private readonly job: Pick<JobContext, 'signal' | 'message'>,
  ) {
    this.client = new HttpClient(policy);
  }

  close(): void {
    this.client.close();
  }

  find(): Promise<RemoteItem[]> {
    const { url, assets: _, ...query } = this.source;
    this.job.message(`searching ${withoutSecrets(url)}`);
    return findItems(this.client, url, { ...query, bbox: this.options.bbox }, this.job.signal);
  }

  /** Returns the result of an Item that is already stored with the same options, without a request; undefined for others. */
  async unchanged(item: RemoteItem): Promise<SceneResult | undefined> {
    const { storage, options } = this;
    const id = options.id ?? slugify(item.id);
    const collection = options.collection ?? item.collection;
    const record = collection === undefined ? undefined : await storage.catalogue.collections.get(collection);
    const known = record && (await storage.getScene(record.id, id));
    if (!known || known.item !== itemDigest(item, options, this.source.assets)) return undefined;
    const { regions, geocodes, warnings } = known;
    const { bbox } = options;
    if (regions && !(bbox && isRegionKnown(regions, bbox))) return undefined;
    const cells = bbox ? geocodes.filter(regionFilter(gridByName(record.grid), bbox)) : geocodes;
    const intact = await storage.intactCells(known, record, cells);
    if (intact.length < cells.length) return undefined;
    return { id, collection: record.id, tiles: cells.length, unchanged: true, replaced: false, warnings };
  }

  /** Reads the headers of an Item's files into a scratch folder, which the caller removes. */
  async open(item: RemoteItem): Promise<OpenItem> {
    const { storage, source, job } = this;
    const digest = itemDigest(item, this.options, source.assets);
    job.message(`opening ${item.id}`);
    const folder = await storage.scratch.make('remote');
    try {
      const fetched = await fetchItem(this.client, item, {
        folder,
        assets: source.assets,
        signal: job.signal,
      });
      return { item, digest, ...fetched };
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Returns the plan of a scene whose files hold the pixels of the cells. Throws TW_STORAGE_DISK_LOW and TW_REMOTE_... */
  async fetch({ item, files }: OpenItem, plan: ScenePlan, cells: string[]): Promise<ScenePlan> {
    const parts = planFetch(plan, cells);
    await this.storage.reserve.check(parts.bytes);
    const total = (parts.bytes / 1e6).toFixed(1);
    let bytes = 0;
    await fetchRanges(parts, files, (more) => {
      bytes += more;
      this.job.message(`${item.id}: fetched ${(bytes / 1e6).toFixed(1)} of ${total} MB`);
    });
    return { ...plan, scene: withFetchedBlocks(plan.scene, parts) };
  }
}

/** Identifies the version of a remote file, in place of a digest of its bytes. */
export function remoteDigests(files: RemoteFiles): [path: string, digest: string][] {
  return [...files].map(([path, { url, size, version }]) => [path, JSON.stringify([version ?? url, size])]);
}
