/** Makes parts of the scenes that other nodes of the cluster ingest. */
import { rm } from 'node:fs/promises';
import { Semaphore } from '../async/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { TileBatch } from '../storage/index.js';
import { ingestFailed, scenePartDiffers, scenePartStopped } from './errors.js';
import { describeScenes, type IngestProcessContext } from './job-inputs.js';
import { fetchAndCut, type RemoteSource } from './owners.js';
import { planInCollection } from './plan.js';
import { nameRemoteFiles, RemoteScenes, remoteDigests, type StacSource, UserNames } from './remote-scenes.js';
import type { IngestOptions } from './scene.js';
import type { ScenePartRequest, ScenePartResult } from './scene-parts.js';
import { computeFingerprint, type IngestContext, sceneSettings } from './scene-tiles.js';

/** Concurrent parts; the others wait. */
const MAX_CONCURRENT_PARTS = 4;
/** Connections to the hosts of a job are kept between its scenes. */
const SESSION_IDLE_MS = 30_000;

/** The connections to the hosts of a job. */
interface Session {
  opened: Promise<{ scenes: RemoteScenes; folder: string }>;
  running: number;
  timer?: NodeJS.Timeout;
}

/** Invariant: a session closes when it has not been used for SESSION_IDLE_MS, and at the end. */
export class ScenePartService {
  private readonly queue = new Semaphore(MAX_CONCURRENT_PARTS);
  private readonly sessions = new Map<string, Session>();
  private readonly closing = new AbortController();

  constructor(
    private readonly context: Omit<IngestContext, 'digests' | 'storedFiles'>,
    private readonly access: NonNullable<IngestProcessContext['remote']>,
    private readonly runBusy: <T>(work: () => Promise<T>) => Promise<T>,
  ) {}

  /**
   * Makes the tiles of some cells of a scene and hands them over to the node that asks. `onShare` gets the completed part, 0 to 1. Throws
   * TW_INGEST_PART_DIFFERS and the errors of an ingest.
   */
  async run(
    request: ScenePartRequest,
    onShare: (share: number) => void,
    stopped: AbortSignal,
  ): Promise<ScenePartResult> {
    const signal = AbortSignal.any([stopped, this.closing.signal]);
    const make = () => this.inSession(request, (scenes) => this.make(request, scenes, onShare, signal));
    return this.runBusy(() => this.queue.run(make, signal));
  }

  /** Ends all work because the node stops. */
  async close(): Promise<void> {
    this.closing.abort(scenePartStopped());
    await Promise.all([...this.sessions.keys()].map((job) => this.endSession(job)));
  }

  private async make(
    { source, options, collection, scene: id, version, fingerprint, cells }: ScenePartRequest,
    shared: RemoteScenes,
    onShare: (share: number) => void,
    signal: AbortSignal,
  ): Promise<ScenePartResult> {
    const { storage, cloudModel, pool } = this.context;
    const remote = shared.withReader({ signal, message: () => {}, log: () => {} });
    const { item, file } = source;
    const opened = await (item ? remote.openItem(item) : remote.openFile(file ?? ''));
    const names = new UserNames();
    nameRemoteFiles(names, opened, opened.name);
    try {
      const [described] = await describeScenes(pool, options, opened.input, [opened.input], signal);
      const scene = {
        ...described!,
        path: opened.name,
        ...(opened.via !== undefined && { via: opened.via }),
      };
      const plan = planInCollection(scene, collection);
      const settings = sceneSettings(plan, options, cloudModel);
      const digests = new Map(remoteDigests(opened));
      const own = await computeFingerprint(plan.scene, settings, digests, signal);
      if (plan.scene.id !== id || own !== fingerprint) throw scenePartDiffers(opened.name);
      const write = await storage.beginScenePart(collection, id, cells, version);
      try {
        const task = { plan, write, settings };
        const fetch: RemoteSource['fetch'] = (...wanted) => remote.fetch(opened, ...wanted);
        const hooks = { signal, onProgress: onShare };
        const { tiles, negative } = await fetchAndCut(this.context, task, { fetch }, cells, hooks);
        await write.handOver();
        return { version: write.version, tiles: new TileBatch(tiles), negative };
      } catch (error) {
        await write.abort();
        throw error;
      }
    } catch (error) {
      throw named(error, names, opened.name);
    } finally {
      await rm(opened.folder, { recursive: true, force: true });
    }
  }

  private async inSession<T>(
    { job, source: { catalog, assets }, options }: ScenePartRequest,
    work: (scenes: RemoteScenes) => Promise<T>,
  ): Promise<T> {
    let session = this.sessions.get(job);
    if (!session) {
      session = { opened: this.openSession({ url: catalog, assets }, options), running: 0 };
      this.sessions.set(job, session);
    }
    session.running++;
    clearTimeout(session.timer);
    try {
      return await work((await session.opened).scenes);
    } finally {
      session.running--;
      if (session.running === 0)
        session.timer = setTimeout(() => void this.endSession(job), SESSION_IDLE_MS).unref();
    }
  }

  private async openSession(source: StacSource, options: IngestOptions) {
    const { storage } = this.context;
    const reader = { signal: this.closing.signal, message: () => {}, log: () => {} };
    const folder = await storage.scratch.make('remote');
    try {
      const scenes = await RemoteScenes.open(this.access, storage, source, options, reader, folder);
      return { scenes, folder };
    } catch (error) {
      await storage.scratch.remove(folder);
      throw error;
    }
  }

  private async endSession(job: string): Promise<void> {
    const session = this.sessions.get(job);
    this.sessions.delete(job);
    clearTimeout(session?.timer);
    // If it did not open, its parts have failed with the error.
    const opened = await session?.opened.catch(() => undefined);
    await opened?.scenes.close();
    // The next open of the data folder removes what stays after an error of the disk.
    if (opened) await this.context.storage.scratch.remove(opened.folder).catch(() => undefined);
  }
}

/** Returns an error whose message names the files as users know them. */
function named(error: unknown, names: UserNames, scene: string): TilewrightError {
  const message = names.replaceIn(messageOf(error));
  if (!(error instanceof TilewrightError)) return ingestFailed.because(error, scene, message);
  return new TilewrightError(error.code, error.status, message, { cause: error });
}
