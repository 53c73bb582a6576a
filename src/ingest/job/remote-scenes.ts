/** The scenes that a job ingests from hosts on the internet: those of a STAC catalog, and single files. */
import { rm } from 'node:fs/promises';
import { messageOf } from '../../errors.js';
import { gridByName } from '../../grid/index.js';
import type { JobContext } from '../../jobs/index.js';
import { parseDatetime } from '../../query/index.js';
import {
  badStacDocument,
  checkUrl,
  findItems,
  type HostPolicy,
  NO_HOSTS,
  openRemoteClient,
  type RemoteAccess,
  type RemoteClient,
  type RemoteItem,
  type StacQuery,
  withoutSecrets,
  withoutSignature,
} from '../../remote/index.js';
import type { Storage } from '../../storage/index.js';
import { plural } from '../../utils/plural.js';
import { isRemoteAddress } from '../../utils/remote-address.js';
import { slugify } from '../formats/shared/index.js';
import type { IngestOptions } from '../ingest-options.js';
import { isRegionKnown, regionFilter, type ScenePlan } from '../plan/index.js';
import {
  CollectionLicences,
  type CopyContext,
  type FetchedFiles,
  fetchFile,
  fetchItem,
  fetchRanges,
  itemDigest,
  planFetch,
  withFetchedBlocks,
} from '../remote/index.js';
import type { SceneResult } from './ingest-scene.js';

/** A search in a STAC catalog. */
export interface StacSource extends Omit<StacQuery, 'bbox'> {
  /** A STAC API, a static catalog, an ItemCollection or an Item. Either this or `items`. */
  url?: string;
  /** Items in place of an address. */
  items?: Record<string, unknown>[];
  /** Keys or bands of the assets that are read; all with data if absent. */
  assets?: string[];
}

/** Throws the errors of `checkUrl` and `parseDatetime` for a search that can never succeed. */
export function checkStacSource({ url, datetime }: StacSource, hosts: HostPolicy = NO_HOSTS): void {
  if (url !== undefined) checkUrl(url, hosts);
  if (datetime !== undefined) parseDatetime(datetime, { dates: 'periods' });
}

/** A scene whose files are open. */
export interface OpenScene extends FetchedFiles {
  /** Scratch folder of the files, which the caller removes. */
  folder: string;
  name: string;
  /** Address of the Item or file, without secrets; undefined for an Item that names none. */
  via: string | undefined;
  /** Digest of the Item and the options, see `SceneRecord.item`; undefined for a single file. */
  digest: string | undefined;
}

/** A file or an Item. */
export interface RemoteInput {
  /** As messages name it. */
  path: string;
  /** Opens its files in a scratch folder, or returns its result if it is stored and unchanged. */
  open(): Promise<OpenScene | SceneResult>;
}

export class RemoteScenes {
  private readonly licences: CollectionLicences;

  private constructor(
    private readonly remote: RemoteClient,
    private readonly storage: Storage,
    private readonly source: StacSource | undefined,
    private readonly options: IngestOptions,
    private readonly job: Pick<JobContext, 'signal' | 'message' | 'log'>,
  ) {
    this.licences = new CollectionLicences(remote.client, job.signal);
  }

  /** Throws TW_REMOTE_CREDENTIALS. */
  static async open(
    access: RemoteAccess,
    storage: Storage,
    source: StacSource | undefined,
    options: IngestOptions,
    job: Pick<JobContext, 'signal' | 'message' | 'log'>,
  ): Promise<RemoteScenes> {
    return new RemoteScenes(await openRemoteClient(access, source?.url), storage, source, options, job);
  }

  close(): void {
    this.remote.client.close();
  }

  /**
   * Returns the single files among the paths, and the Items of the search. `onFailure` gets documents that cannot be used, and a search
   * that fails if the job has paths, too.
   */
  async inputs(
    paths: readonly string[],
    onFailure: (url: string, error: unknown) => void,
  ): Promise<RemoteInput[]> {
    const items = await this.search(onFailure).catch((error) => {
      this.job.signal.throwIfAborted();
      if (paths.length === 0) throw error;
      onFailure(withoutSecrets(this.source?.url ?? ''), error);
      return [];
    });
    return [
      ...paths.filter(isRemoteAddress).map((path) => ({
        path: withoutSecrets(path),
        open: () => this.openFile(path),
      })),
      ...items.map((item) => ({
        path: itemLabel(item),
        open: async () => (await this.unchanged(item)) ?? this.openItem(item),
      })),
    ];
  }

  /** Returns the Items of the search; none without one. */
  async search(onFailure: (url: string, error: unknown) => void): Promise<RemoteItem[]> {
    if (!this.source) return [];
    const { url, items = [], assets: _, ...query } = this.source;
    const { bbox } = this.options;
    const where = url === undefined ? plural(items.length, 'Item') : withoutSecrets(url);
    this.job.message(`searching ${where}`);
    const found = await findItems(
      this.remote.client,
      url ?? items,
      { ...query, bbox },
      {
        signal: this.job.signal,
        onFailure,
      },
    );
    const conditions = JSON.stringify({ ...query, bbox });
    this.job.log('info', `${plural(found.length, 'Item')} found in ${where} by ${conditions}`);
    if (found.length === 0) this.job.log('warning', 'no Item matches the search');
    return found;
  }

  /** Returns the result of an Item that is already stored with the same options, without a request; undefined for others. */
  private async unchanged(item: RemoteItem): Promise<SceneResult | undefined> {
    const { storage, options } = this;
    const id = options.id ?? slugify(item.id);
    const collection = options.collection ?? item.collection;
    const record = collection === undefined ? undefined : await storage.catalogue.collections.get(collection);
    const known = record && (await storage.getScene(record.id, id));
    if (!known || known.item !== itemDigest(item, options, this.source?.assets)) return undefined;
    const { regions, geocodes, warnings } = known;
    const { bbox } = options;
    if (regions && !(bbox && isRegionKnown(regions, bbox))) return undefined;
    const cells = bbox ? geocodes.filter(regionFilter(gridByName(record.grid), bbox)) : geocodes;
    const intact = await storage.intactCells(known, record, cells);
    if (intact.length < cells.length) return undefined;
    return { id, collection: record.id, tiles: cells.length, unchanged: true, replaced: false, warnings };
  }

  /** Reads the headers of an Item's files into a scratch folder. Throws TW_REMOTE_..., TW_RASTER_... and TW_INGEST_... */
  async openItem(item: RemoteItem): Promise<OpenScene> {
    const { options, source, remote, job } = this;
    if (options.datetime === undefined && !hasTime(item))
      throw badStacDocument(itemLabel(item), 'it has no datetime');
    const licence = await this.licences.of(item).catch((error) => {
      job.signal.throwIfAborted();
      job.log('warning', `the licence of ${item.id} is not known: ${messageOf(error)}`);
      return { links: [] };
    });
    const digest = itemDigest(item, options, source?.assets);
    const choice = { names: source?.assets, prefersS3: remote.prefersS3 };
    const via = item.self !== undefined && isRemoteAddress(item.self) ? withoutSecrets(item.self) : undefined;
    return this.open({ name: item.id, via, digest }, (context, folder) =>
      fetchItem(context, item, folder, choice, licence),
    );
  }

  /** Reads the header of a file into a scratch folder. Throws as `openItem` does. */
  private openFile(url: string): Promise<OpenScene> {
    const via = withoutSecrets(url);
    return this.open({ name: via, via, digest: undefined }, (context, folder) =>
      fetchFile(context, url, folder),
    );
  }

  private async open(
    facts: Pick<OpenScene, 'name' | 'via' | 'digest'>,
    fetch: (context: CopyContext, folder: string) => Promise<FetchedFiles>,
  ): Promise<OpenScene> {
    const { storage, job } = this;
    job.message(`opening ${facts.name}`);
    const folder = await storage.scratch.make('remote');
    const context = {
      client: this.remote.client,
      checkSpace: (bytes: number) => storage.reserve.check(bytes),
      signal: job.signal,
    };
    try {
      return { ...facts, folder, ...(await fetch(context, folder)) };
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Requests and bytes of the pixels: those that `fetch` needs, and those of files that are here as a whole. */
  plan({ files, downloaded }: OpenScene, plan: ScenePlan, cells: string[]) {
    const { requests, bytes } = planFetch(plan, cells, files);
    return {
      requests: requests + downloaded.length,
      bytes: downloaded.reduce((sum, size) => sum + size, bytes),
    };
  }

  /**
   * Returns the plan of a scene whose files hold the pixels of the cells. `onShare` gets the fetched part, 0 to 1. Throws
   * TW_STORAGE_DISK_LOW and TW_REMOTE_...
   */
  async fetch(
    { name, files }: OpenScene,
    plan: ScenePlan,
    cells: string[],
    onShare: (share: number) => void,
  ): Promise<ScenePlan> {
    const parts = planFetch(plan, cells, files);
    await this.storage.reserve.check(parts.bytes);
    const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
    const started = performance.now();
    let bytes = 0;
    await fetchRanges(
      parts,
      files,
      (more) => {
        bytes += more;
        const perSecond = (1000 * bytes) / Math.max(1, performance.now() - started);
        this.job.message(
          `${name}: fetched ${megabytes(bytes)} of ${megabytes(parts.bytes)} MB at ${megabytes(perSecond)} MB/s`,
        );
        // Bytes of a repeated request count twice.
        onShare(Math.min(1, bytes / parts.bytes));
      },
      this.job.signal,
    );
    return { ...plan, scene: withFetchedBlocks(plan.scene, parts) };
  }
}

/** The name of an Item in messages: its address; its id with that of the document that holds it; or its id alone. */
function itemLabel({ id, url, self }: RemoteItem): string {
  if (url.startsWith('file:')) return id;
  const address = withoutSecrets(url);
  if (self !== undefined || !URL.canParse(address)) return address;
  return Object.assign(new URL(address), { hash: id }).href;
}

function hasTime({ document }: RemoteItem): boolean {
  const { datetime, start_datetime: start } = (document.properties ?? {}) as Record<string, unknown>;
  return typeof datetime === 'string' || typeof start === 'string';
}

/**
 * Identifies the versions of remote files, in place of digests of their bytes. A host without ETag and Last-Modified does not say if a file
 * has changed: then a new Item means new files, and a single file is new each time.
 */
export function remoteDigests({ files, digest }: OpenScene): [path: string, digest: string][] {
  return [...files].map(([path, { url, size, version }]) => {
    const identity = version ?? [withoutSignature(url), digest ?? Date.now()];
    return [path, JSON.stringify([identity, size])];
  });
}
