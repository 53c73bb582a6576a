/** The scenes that a job ingests from hosts on the internet: those of a STAC catalog, and single files. */
import { createHash } from 'node:crypto';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../errors.js';
import { gridByName } from '../grid/index.js';
import { type JobContext, jobInterrupted } from '../jobs/index.js';
import { parseDatetime } from '../query/index.js';
import {
  badStacDocument,
  checkUrl,
  findItems,
  type HostPolicy,
  NO_HOSTS,
  openRemoteClient,
  type RemoteAccess,
  type RemoteClient,
  type RemoteFile,
  type RemoteItem,
  type StacQuery,
  withoutSecrets,
  withoutSignature,
} from '../remote/index.js';
import type { Storage } from '../storage/index.js';
import { isRemoteAddress, plural } from '../utils/text.js';
import { isRegionKnown, overlapsRegion, regionFilter } from './cells.js';
import { outsideRegion } from './errors.js';
import {
  bytesOfBlocks,
  CollectionLicences,
  type FetchedFiles,
  fetchFile,
  fetchItem,
  fetchRanges,
  planFetch,
  withFetchedBlocks,
} from './fetch.js';
import { chooseAssets, itemDigest, itemPositions, type StoredItem, StoredItems } from './items.js';
import type { ScenePlan } from './plan.js';
import { type CopyContext, isTiffStart, WholeFiles } from './remote-copy.js';
import { type IngestOptions, slugify } from './scene.js';
import type { ScenePartSource } from './scene-parts.js';
import type { SceneResult } from './scene-tiles.js';

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
  /** Scratch folder of the files, which the caller removes, unless `keeps` returns true for it. */
  folder: string;
  whole: WholeFiles;
  name: string;
  /** Position among all scenes of the job, for messages; empty for the only one. */
  count: string;
  /** Address of the Item or file, without secrets; undefined for an Item that names none. */
  via: string | undefined;
  /** Digest of the Item and the options, see `SceneRecord.item`; undefined for a single file. */
  digest: string | undefined;
  origin: { item: RemoteItem } | { file: string };
}

/** A file or an Item. */
export interface RemoteInput {
  /** As messages name it. */
  path: string;
  /** Opens its files in a scratch folder, or returns its result if it is stored and unchanged. */
  open(): Promise<OpenScene | SceneResult>;
}

/** The interface of the job for which scenes are read. */
type SceneReader = Pick<JobContext, 'signal' | 'message' | 'log'>;

/** The part of a RemoteScenes that all of its readers share. */
interface SharedReads {
  remote: RemoteClient;
  licences: CollectionLicences;
  /** Contains the folders of the scenes. */
  folder: string;
  /** The folders of the scenes. */
  folders: Set<string>;
}

/** The folders of the scenes have names that a resumed job uses again. */
export class RemoteScenes {
  private items: StoredItems | undefined;

  private constructor(
    private readonly shared: SharedReads,
    private readonly storage: Storage,
    private readonly source: StacSource | undefined,
    private readonly options: IngestOptions,
    private readonly job: SceneReader,
  ) {}

  /** `folder`: scratch folder, which `close` removes if no scene is left in it. Throws TW_REMOTE_CREDENTIALS. */
  static async open(
    access: RemoteAccess,
    storage: Storage,
    source: StacSource | undefined,
    options: IngestOptions,
    job: SceneReader,
    folder: string,
  ): Promise<RemoteScenes> {
    const remote = await openRemoteClient(access, source?.url);
    const licences = new CollectionLicences(remote.client, job.signal);
    const shared = { remote, licences, folder, folders: new Set<string>() };
    return new RemoteScenes(shared, storage, source, options, job);
  }

  /** Returns an object that shares the connections and the folder of this one, and whose reads end with the signal of `job`. */
  withReader(job: SceneReader): RemoteScenes {
    return new RemoteScenes(this.shared, this.storage, this.source, this.options, job);
  }

  async close(): Promise<void> {
    this.shared.remote.client.close();
    await this.items?.remove();
    // It contains the scenes of an interrupted job. The end of the job removes it with them.
    await rmdir(this.shared.folder).catch(() => undefined);
  }

  /** True if a folder of a scene stays for the job when it is resumed. If it is not, its end removes the folder. */
  keeps(folder: string): boolean {
    return this.shared.folders.has(folder) && jobInterrupted.is(this.job.signal.reason);
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
    const files = paths.filter(isRemoteAddress);
    const total = files.length + items.length;
    const countOf = (i: number) => (total > 1 ? ` (scene ${i + 1} of ${total})` : '');
    return [
      ...files.map((path, i) => ({
        path: withoutSecrets(path),
        open: () => this.openFile(path, countOf(i)),
      })),
      ...items.map((item, i) => ({
        path: item.label,
        open: async () => this.openStored(item, countOf(files.length + i)),
      })),
    ];
  }

  private async openStored(stored: StoredItem, count: string): Promise<OpenScene | SceneResult> {
    const item = await stored.read();
    return (await this.unchanged(item)) ?? this.openItem(item, count);
  }

  /** Returns the Items of the search; none without one. */
  async search(onFailure: (url: string, error: unknown) => void): Promise<StoredItem[]> {
    if (!this.source) return [];
    const { url, items = [], assets: _, ...query } = this.source;
    const { bbox } = this.options;
    const where = url === undefined ? plural(items.length, 'Item') : withoutSecrets(url);
    this.job.message(`searching ${where}`);
    this.items = await StoredItems.create(join(this.shared.folder, 'items'), (bytes) =>
      this.storage.reserve.check(bytes),
    );
    const keep = (item: RemoteItem) => this.items!.add(item, itemLabel(item));
    const { signal } = this.job;
    const onDuplicates = (count: number) =>
      this.job.log(
        'info',
        `${plural(count, 'Item')} left out, because others have the same collection and id`,
      );
    const onLimited = (matched: number | undefined) =>
      this.job.log('info', `${matched ?? 'more'} Items match; the limit leaves out all but ${query.limit}`);
    const conditioned = { ...query, bbox };
    const found = await findItems(this.shared.remote.client, url ?? items, conditioned, {
      signal,
      onFailure,
      keep,
      onDuplicates,
      onLimited,
    });
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
  async openItem(item: RemoteItem, count = ''): Promise<OpenScene> {
    const { options, source, job } = this;
    const { remote, licences } = this.shared;
    if (options.datetime === undefined && !hasTime(item))
      throw badStacDocument(itemLabel(item), 'it has no datetime');
    if (await this.isBesideRegion(item)) throw outsideRegion(itemLabel(item));
    const licence = await licences.of(item).catch((error) => {
      job.signal.throwIfAborted();
      job.log('warning', `the licence of ${item.id} is not known: ${messageOf(error)}`);
      return { links: [] };
    });
    const digest = itemDigest(item, options, source?.assets);
    const choice = { names: source?.assets, prefersS3: remote.prefersS3 };
    const via = item.self !== undefined && isRemoteAddress(item.self) ? withoutSecrets(item.self) : undefined;
    const identity = JSON.stringify([item.url, item.collection, item.id]);
    return this.open({ name: item.id, count, via, digest, origin: { item } }, identity, (context, folder) =>
      fetchItem(context, item, folder, choice, licence),
    );
  }

  /** True if the Item says where its rasters are, and they have no cell in the region. Files that are read as a whole can be large. */
  private async isBesideRegion(item: RemoteItem): Promise<boolean> {
    const { storage, options, source, shared } = this;
    const { bbox } = options;
    const id = options.collection ?? item.collection;
    const record = id === undefined ? undefined : await storage.catalogue.collections.get(id);
    const precision = options.precision ?? record?.precision;
    if (!bbox || precision === undefined) return false;
    const choice = { names: source?.assets, prefersS3: shared.remote.prefersS3 };
    const positions = itemPositions(item, chooseAssets(item, choice));
    const grid = gridByName(options.grid ?? record?.grid ?? 'geohash');
    return positions !== undefined && !overlapsRegion(positions, itemLabel(item), grid, precision, bbox);
  }

  /** Reads the header of a file into a scratch folder. Throws as `openItem` does. */
  openFile(url: string, count = ''): Promise<OpenScene> {
    const via = withoutSecrets(url);
    const facts = { name: via, count, via, digest: undefined, origin: { file: url } };
    return this.open(facts, withoutSignature(url), (context, folder) => fetchFile(context, url, folder));
  }

  /**
   * Returns the source by which other nodes open the same files. Undefined for files that are read as a whole, and for a file of a host
   * that does not say if it has changed.
   */
  sourceOf({ origin, files, downloaded, digest }: OpenScene): ScenePartSource | undefined {
    const isShareable = ({ version, start }: RemoteFile) =>
      (digest !== undefined || version !== undefined) && isTiffStart(start);
    if (downloaded.length > 0 || ![...files.values()].every(isShareable)) return undefined;
    const { url: catalog, assets } = this.source ?? {};
    return { ...origin, ...(catalog !== undefined && { catalog }), ...(assets && { assets }) };
  }

  private async open(
    facts: Pick<OpenScene, 'name' | 'count' | 'via' | 'digest' | 'origin'>,
    identity: string,
    fetch: (context: CopyContext, folder: string) => Promise<FetchedFiles>,
  ): Promise<OpenScene> {
    const { storage, job } = this;
    job.message(`opening ${facts.name}${facts.count}`);
    const folder = this.folderOf(identity);
    const whole = await WholeFiles.open(folder);
    const context = {
      whole,
      client: this.shared.remote.client,
      checkSpace: (bytes: number) => storage.reserve.check(bytes),
      signal: job.signal,
    };
    try {
      return { ...facts, folder, whole, ...(await fetch(context, folder)) };
    } catch (error) {
      if (!this.keeps(folder)) await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** A new folder for each scene: inputs can name a file twice. */
  private folderOf(identity: string): string {
    const name = createHash('sha256').update(identity).digest('hex').slice(0, 32);
    for (let i = 0; ; i++) {
      const folder = join(this.shared.folder, `remote-${name}-${i}`);
      if (this.shared.folders.has(folder)) continue;
      this.shared.folders.add(folder);
      return folder;
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

  /** Bytes of the blocks that cells need, by block. */
  blocks({ files }: OpenScene, plan: ScenePlan, cells: string[]): Map<string, number> {
    return bytesOfBlocks(planFetch(plan, cells, files));
  }

  /**
   * Returns the plan of a scene whose files hold the pixels of the cells. `onShare` gets the fetched part, 0 to 1. Throws
   * TW_STORAGE_DISK_LOW and TW_REMOTE_...
   */
  async fetch(
    { name, count, files, whole }: OpenScene,
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
      whole,
      (more) => {
        bytes += more;
        const perSecond = (1000 * bytes) / Math.max(1, performance.now() - started);
        this.job.message(
          `${name}${count}: fetched ${megabytes(bytes)} of ${megabytes(parts.bytes)} MB at ${megabytes(perSecond)} MB/s`,
        );
        // A repeated request can send a byte twice.
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

/** Adds the names of the files of a scene that users know. `path`: name of the scene. */
export function nameRemoteFiles(names: UserNames, { urls, folder }: OpenScene, path: string): void {
  for (const [copy, url] of urls) names.add(copy, withoutSecrets(url));
  names.add(folder, path);
}

/** Replaces paths that only the server knows by the names that users know, in messages and results. */
export class UserNames {
  /** Innermost first. */
  private names: [path: string, name: string][] = [];

  /** Adds the name of a file or folder. A folder within another one must be added before it, or with `first`. */
  add(path: string, name: string, first = false): void {
    if (first) this.names.unshift([path, name]);
    else this.names.push([path, name]);
  }

  /** Forgets the names of a folder and of all files in it. */
  forget(folder: string): void {
    this.names = this.names.filter(([path]) => !path.startsWith(folder));
  }

  replaceIn(text: string): string {
    return this.names.reduce((named, [path, name]) => named.replaceAll(path, () => name), text);
  }
}
