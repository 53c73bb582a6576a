/** One run of the ingest process: describes the scenes of all inputs, ingests a few at a time, and reports progress and failures. */

import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationUnavailable } from '../coordination/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { FailedWithResults, type JobContext } from '../jobs/index.js';
import type { IngestMetrics } from '../metrics/index.js';
import { checkBbox } from '../query/index.js';
import type { RemoteAccess } from '../remote/index.js';
import type { CollectionRecord } from '../storage/index.js';
import { groupFailures, isRemoteAddress } from '../utils/text.js';
import type { SharedMemory } from './cut/memory.js';
import { allInputsFailed, ingestFailed, outsideRegion } from './errors.js';
import { checkNamePattern } from './formats/name-pattern.js';
import { type InputFinder, inputFinder, isArchive, type SkippedFile } from './inputs.js';
import {
  describeOptions,
  describeScenes,
  type IngestInputs,
  type IngestProcessContext,
  type IngestResults,
  jobSummary,
  NO_ACCESS,
  suggestedOptions,
} from './job-inputs.js';
import type { RemoteSource } from './owners.js';
import { PathGuard } from './path-guard.js';
import { planSceneTiles, type ScenePlan } from './plan.js';
import {
  nameRemoteFiles,
  type OpenScene,
  type RemoteInput,
  RemoteScenes,
  remoteDigests,
  UserNames,
} from './remote-scenes.js';
import { type Scene, sourceFiles } from './scene.js';
import { DuplicateSceneGuard, type FirstSceneLock } from './scene-order.js';
import { ScenePartClient } from './scene-parts.js';
import { type IngestContext, ingestScene, type SceneResult, type StoredFiles } from './scene-tiles.js';
import { fileOfArchive, unpackArchive } from './unpack.js';

/**
 * Progress of an ingest. Scenes are weighted by their cells: 10 cells of a small scene are not half of the work if the other
 * scene has 5,000. A scene without a known number of cells has the mean weight of the others.
 */
export class SceneShares {
  private readonly scenes: { share: number; cells?: number }[] = [];
  /** Sums over all scenes, so that an update takes constant time. */
  private known = { scenes: 0, cells: 0, done: 0 };
  private unknownDone = 0;
  private reported = 0;

  /** Adds a scene and returns its index. */
  add(): number {
    return this.scenes.push({ share: 0 }) - 1;
  }

  setCells(index: number, cells: number): void {
    this.change(index, { ...this.scenes[index]!, cells });
  }

  /** `share`: 0 to 1. */
  setShare(index: number, share: number): void {
    this.change(index, { ...this.scenes[index]!, share: Math.round(share * SHARE_STEPS) / SHARE_STEPS });
  }

  /**
   * The completed fraction from 0 to 1, if `more` scenes are still to be found. It never decreases, although new cells lower
   * the true fraction.
   */
  overall(more: number): number {
    const { scenes, cells, done } = this.known;
    const mean = scenes > 0 ? Math.max(1, cells / scenes) : 1;
    const all = cells + (this.scenes.length - scenes + more) * mean;
    const share = all === 0 ? 0 : (done + this.unknownDone * mean) / all;
    this.reported = Math.max(this.reported, share);
    return this.reported;
  }

  /** The cells of the shares of all scenes. */
  get cellsDone(): number {
    return Math.floor(this.known.done);
  }

  private change(index: number, scene: { share: number; cells?: number }): void {
    this.count(this.scenes[index]!, -1);
    this.count(scene, 1);
    this.scenes[index] = scene;
  }

  private count({ share, cells }: { share: number; cells?: number }, sign: 1 | -1): void {
    if (cells === undefined) this.unknownDone += sign * share;
    else {
      this.known.scenes += sign;
      this.known.cells += sign * cells;
      this.known.done += sign * share * cells;
    }
  }
}

/** Sums of integer multiples of 1 / SHARE_STEPS are exact, so no rounding errors add up. */
const SHARE_STEPS = 2 ** 20;

/** A restart of etcd or the election of a leader takes less than this; after it, a scene fails. */
const ETCD_RETRY_TIMEOUT_MS = 120_000;
const ETCD_RETRY_INTERVAL_MS = 1000;

/** Repeats work if etcd failed before a commit, for up to ETCD_RETRY_TIMEOUT_MS. `path`: name of the scene for the log. */
async function retryWhileEtcdIsDown<T>(
  { log, signal }: Pick<JobContext, 'log' | 'signal'>,
  path: string,
  work: () => Promise<T>,
): Promise<T> {
  for (let until: number | undefined; ; ) {
    try {
      return await work();
    } catch (error) {
      until ??= performance.now() + ETCD_RETRY_TIMEOUT_MS;
      if (!coordinationUnavailable.is(error) || performance.now() > until) throw error;
      log('warning', `${path}: etcd does not answer; the scene will be retried`);
      await sleep(ETCD_RETRY_INTERVAL_MS, undefined, { signal });
    }
  }
}

/** Prefix of the log lines about a scene that is about to be cut. */
export const PLAN_PREFIX = 'plan: ';

/** Concurrent scenes: while one waits for the disk, another is cut. More would only divide the memory. */
const MAX_CONCURRENT_SCENES = 4;

/** Most archives hold one folder, which is searched as if it was named itself. */
const ARCHIVE_LEVELS = 2;

/** A scene, and its position in the order of all scenes. */
interface FoundScene {
  index: number;
  scene: Scene;
  remote?: RemoteSource;
  /** Folder that is removed when its last scene has ended. */
  scratch: ScratchFolder | undefined;
}

/** The files of an archive or of a remote scene while its scenes are in progress. */
interface ScratchFolder {
  folder: string;
  scenes: number;
}

/**
 * One run over all inputs. Invariants: scenes are described one after another, in the order of the inputs, and a few are cut
 * concurrently; every input ends as a result or as a failure.
 */
export class IngestJob {
  private readonly context: IngestContext;
  private readonly results: SceneResult[] = [];
  private readonly failed: IngestResults['failed'] = [];
  private readonly passedOver: string[] = [];
  private readonly skipped: SkippedFile[] = [];
  private readonly finder: InputFinder;
  private readonly tiles = { total: 0, done: 0, failed: 0, skipped: 0 };
  private readonly duplicates: DuplicateSceneGuard;
  private readonly unpacked = new Set<ScratchFolder>();
  private readonly loggedNotes = new Set<string>();
  /** Collections as they would be after the scenes of a dry run so far. */
  private readonly dryRunCollections = new Map<string, CollectionRecord>();
  private readonly guard: PathGuard | undefined;
  private remote: RemoteScenes | undefined;
  private readonly access: RemoteAccess;
  private readonly parts: ScenePartClient | undefined;
  private readonly userNames = new UserNames();
  private inputs = 0;
  private readonly sceneProgress = new SceneShares();
  private inputsDescribed = 0;
  private readonly metrics: IngestMetrics | undefined;

  constructor(
    {
      storage,
      workers: pool,
      cloudModel,
      metrics,
      allowedFolders = [],
      remote = NO_ACCESS,
      cluster,
    }: IngestProcessContext,
    memory: SharedMemory,
    firstSceneLock: FirstSceneLock,
    storedFiles: StoredFiles,
    private readonly options: IngestInputs,
    private readonly job: JobContext,
  ) {
    this.context = { storage, pool, memory, cloudModel, digests: new Map(), storedFiles };
    this.metrics = metrics;
    this.access = remote;
    this.parts = cluster && new ScenePartClient(cluster, job, describeOptions(options));
    this.duplicates = new DuplicateSceneGuard(firstSceneLock, job.signal);
    const { fenced, sentAs, paths = [] } = options;
    checkNamePattern(options);
    if (options.bbox) checkBbox(options.bbox);
    this.finder = inputFinder(options.namePattern);
    if (fenced) this.guard = new PathGuard(allowedFolders);
    if (sentAs !== undefined)
      for (const path of [paths[0]!, dirname(paths[0]!)]) this.userNames.add(path, sentAs);
  }

  async run(): Promise<IngestResults> {
    this.job.partial(() => this.partialResults());
    const scenes = this.scenes();
    const ingestScenes = async () => {
      // The generator returns one scene at a time, even to concurrent callers.
      for (let next = await scenes.next(); !next.done; next = await scenes.next()) {
        const { index, scene, scratch } = next.value;
        const result = await this.recordFailure(scene.path, () => this.ingest(next.value));
        if (result) {
          this.results[index] = result;
          this.logScene(result);
          if (!this.options.dryRun) this.countScene(scene, result);
        }
        this.share(index, 1);
        if (scratch && --scratch.scenes === 0) await this.remove(scratch);
        if (scratch && next.value.remote) this.forgetNames(scratch);
      }
    };
    const concurrency = Math.min(MAX_CONCURRENT_SCENES, 1 + this.context.pool.threads);
    const outcomes = await Promise.allSettled(Array.from({ length: concurrency }, ingestScenes));
    for (const scratch of this.unpacked) await this.remove(scratch);
    await this.remote?.close();
    this.parts?.logSummary();
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    const results = this.partialResults();
    this.job.message(jobSummary(results, this.options.dryRun));
    if (results.scenes.length > 0 || this.failed.length === 0) return results;
    throw new FailedWithResults(allInputsFailed(groupFailures(this.failed)), results);
  }

  private partialResults(): IngestResults {
    const results = this.results.filter(Boolean);
    const { namePattern, bbox } = this.options;
    return {
      collection: results[0]?.collection ?? null,
      scenes: results,
      tiles: results.reduce((sum, { tiles }) => sum + tiles, 0),
      failed: this.failed,
      ...(results.length === 0 && { suggested: suggestedOptions(this.failed, this.options) }),
      passedOver: this.passedOver,
      ...((namePattern ?? bbox) !== undefined && { skipped: this.skipped }),
    };
  }

  /** Logs notes that apply to many scenes once, before the first of them is cut. */
  private logNotes({ notes }: ScenePlan): void {
    for (const { level, text } of notes) {
      if (!this.loggedNotes.has(text)) this.job.log(level, `${PLAN_PREFIX}${text}`);
      this.loggedNotes.add(text);
    }
  }

  private logScene({ collection, id, tiles, unchanged, replaced, warnings }: SceneResult): void {
    const what = unchanged ? 'unchanged' : `${tiles} tiles${replaced ? ', replaced' : ''}`;
    this.job.log('info', `${collection}/${id}: ${what}`);
    for (const warning of warnings) this.job.log('warning', `${collection}/${id}: ${warning}`);
  }

  private countScene({ groups }: Scene, { unchanged, replaced }: SceneResult): void {
    const outcome = unchanged ? 'unchanged' : replaced ? 'replaced' : 'new';
    this.metrics?.scenes.inc({ outcome });
    if (unchanged) return;
    for (const { bands } of groups)
      for (const { header } of bands) this.metrics?.pixels.inc(header.width * header.height);
  }

  private async *scenes(): AsyncGenerator<FoundScene> {
    const inputs: string[] = [];
    const { paths = [] } = this.options;
    for (const path of paths.filter((one) => !isRemoteAddress(one))) {
      const found = await this.recordFailure(path, async () => this.find(await this.resolveAllowed(path)));
      inputs.push(...(found ?? []));
    }
    const remote = await this.remoteInputs();
    this.inputs = inputs.length + remote.length;
    for (const input of inputs) {
      this.job.signal.throwIfAborted();
      const found = await this.recordFailure(input, () => this.describe(input));
      const { scenes, scratch } = found ?? { scenes: [], scratch: undefined };
      this.inputsDescribed++;
      // Adds all scenes before the first one is cut, so that progress counts them.
      const indexes = scenes.map(() => this.sceneProgress.add());
      for (const [i, scene] of scenes.entries()) yield { index: indexes[i]!, scene, scratch };
    }
    for (const { path, open } of remote) {
      this.job.signal.throwIfAborted();
      const found = await this.recordFailure(path, async () => this.describeRemote(path, await open()));
      this.inputsDescribed++;
      const index = this.sceneProgress.add();
      if (found && 'unchanged' in found) this.addResult(index, found);
      else if (found) yield { index, ...found };
    }
  }

  private async remoteInputs(): Promise<RemoteInput[]> {
    const { options, context, job } = this;
    const { paths = [], stac } = options;
    if (!stac && !paths.some(isRemoteAddress)) return [];
    const { storage } = context;
    const folder = await storage.scratch.makeForJob(job.id);
    this.remote = await RemoteScenes.open(this.access, storage, stac, describeOptions(options), job, folder);
    return this.remote.inputs(paths, (url, error) => this.addFailure(url, error));
  }

  private async describeRemote(
    path: string,
    opened: OpenScene | SceneResult,
  ): Promise<SceneResult | Omit<FoundScene, 'index'>> {
    if ('unchanged' in opened) return opened;
    const remote = this.remote!;
    const scratch = { folder: opened.folder, scenes: 1 };
    this.unpacked.add(scratch);
    nameRemoteFiles(this.userNames, opened, path);
    const source = remote.sourceOf(opened);
    try {
      const [scene] = await this.scenesOf(opened.input, [opened.input]);
      for (const [copy, digest] of remoteDigests(opened)) this.context.digests.set(copy, digest);
      return {
        scene: { ...this.named(scene!, path), ...(opened.via !== undefined && { via: opened.via }) },
        scratch,
        remote: {
          digest: opened.digest,
          plan: (plan, cells) => remote.plan(opened, plan, cells),
          fetch: (plan, cells, onShare) => remote.fetch(opened, plan, cells, onShare),
          owners:
            source &&
            this.parts?.ownersFor({
              source,
              name: path,
              blocksOf: (plan, cells) => remote.blocks(opened, plan, cells),
            }),
        },
      };
    } catch (error) {
      await this.remove(scratch);
      throw error;
    }
  }

  private addResult(index: number, result: SceneResult): void {
    this.results[index] = result;
    this.logScene(result);
    this.share(index, 1);
  }

  /** Records what is not an input. */
  private async find(path: string, levels?: number): Promise<string[]> {
    const { inputs, passedOver, skipped = [] } = await this.finder.find(path, levels);
    this.passedOver.push(...passedOver.map((folder) => this.toUserNames(folder)));
    for (const { path, reason } of skipped) this.skip(path, reason);
    return inputs;
  }

  private skip(path: string, reason: string): void {
    const named = { path: this.toUserNames(path), reason };
    this.skipped.push(named);
    this.job.log('warning', `${named.path} is skipped: ${named.reason}`);
  }

  private async describe(path: string): Promise<{ scenes: Scene[]; scratch: ScratchFolder | undefined }> {
    const input = await this.resolveAllowed(path);
    if (await isArchive(input)) return this.describeArchive(input);
    const resolveFiles = async () => {
      for (const file of await this.finder.filesOf(input)) await this.resolveAllowed(file);
    };
    await resolveFiles();
    const scenes = await this.scenesOf(input);
    // The headers must not come from a path that has become a link.
    await resolveFiles();
    await this.guard?.assertUnchanged(scenes.flatMap(sourceFiles));
    return { scenes: scenes.map((scene) => this.named(scene, scene.path)), scratch: undefined };
  }

  private async describeArchive(input: string): Promise<{ scenes: Scene[]; scratch: ScratchFolder }> {
    const { storage } = this.context;
    const scratch = { folder: await storage.scratch.make('unpacked'), scenes: 0 };
    this.unpacked.add(scratch);
    this.userNames.add(scratch.folder, input, true);
    try {
      const { signal } = this.job;
      this.job.message(this.toUserNames(`unpacking ${input}`));
      await this.guard?.assertUnchanged([input]);
      const files = await unpackArchive(input, scratch.folder, { reserve: storage.reserve, signal });
      await this.guard?.assertUnchanged([input]);
      const only = fileOfArchive(this.options.sentAs ?? input, files);
      const inputs = await this.find(join(scratch.folder, only ?? ''), ARCHIVE_LEVELS);
      const scenes: Scene[] = [];
      for (const one of inputs) {
        const name = inputs.length === 1 ? input : one;
        const found = await this.recordFailure(name, () => this.scenesOf(one));
        scenes.push(...(found ?? []).map((scene) => this.named(scene, name)));
      }
      scratch.scenes = scenes.length;
      if (scenes.length === 0) await this.remove(scratch);
      return { scenes, scratch };
    } catch (error) {
      await this.remove(scratch);
      throw error;
    }
  }

  private async scenesOf(path: string, files?: string[]): Promise<Scene[]> {
    const own = files ?? (await this.finder.filesOf(path));
    return describeScenes(this.context.pool, describeOptions(this.options), path, own, this.job.signal);
  }

  /** The path by which an input is opened. Throws TW_INGEST_OUTSIDE. */
  private async resolveAllowed(path: string): Promise<string> {
    return this.guard ? this.guard.resolveAllowed(path) : path;
  }

  /** Replaces names that only the server knows. */
  private toUserNames(text: string): string {
    return this.userNames.replaceIn(text);
  }

  private named(scene: Scene, path: string): Scene {
    const warnings = scene.warnings.map((warning) => this.toUserNames(warning));
    return { ...scene, path: this.toUserNames(path), warnings };
  }

  /** Drops what is known of the files of a remote scene, of which a job can have thousands. No later message names them. */
  private forgetNames({ folder }: ScratchFolder): void {
    this.userNames.forget(folder);
    const { digests } = this.context;
    for (const path of digests.keys()) if (path.startsWith(folder)) digests.delete(path);
  }

  private async remove(scratch: ScratchFolder): Promise<void> {
    this.unpacked.delete(scratch);
    if (this.remote?.keeps(scratch.folder)) return;
    await rm(scratch.folder, { recursive: true, force: true });
  }

  private async ingest({ index, scene, scratch, remote }: FoundScene): Promise<SceneResult> {
    const { job, context, options, tiles, guard } = this;
    job.message(this.toUserNames(scene.path));
    const id = options.collection ?? scene.collection.id;
    const cut = async () => {
      const plan = await planSceneTiles(context.storage, scene, options, this.dryRunCollections);
      this.logNotes(plan);
      return retryWhileEtcdIsDown(job, this.toUserNames(scene.path), () => ingestOnce(plan));
    };
    const ingestOnce = async (plan: ScenePlan) => {
      let cells = 0;
      let made = 0;
      try {
        const result = await ingestScene(
          context,
          plan,
          options,
          {
            job: job.id,
            signal: job.signal,
            onCells: (count) => {
              // The scene is planned again if another job has changed it.
              tiles.total += count - cells;
              cells = count;
              this.sceneProgress.setCells(index, count);
            },
            onProgress: (share) => this.share(index, share),
            onTiles: (count) => {
              made = count;
            },
            onRead: async () => {
              // Nobody else can write to unpacked files in the data folder.
              if (!scratch) await guard?.assertUnchanged(sourceFiles(scene));
            },
          },
          remote,
        );
        tiles.done += made;
        tiles.skipped += cells - made;
        return result;
      } catch (error) {
        // The scene is tried again.
        if (coordinationUnavailable.is(error)) tiles.total -= cells;
        else tiles.failed += cells;
        throw error;
      }
    };
    return this.duplicates.run(id, scene, cut);
  }

  /** Reports progress by cells. An input that is not described yet counts as one scene. */
  private share(index: number, share: number): void {
    this.sceneProgress.setShare(index, share);
    const { total, done, failed, skipped } = this.tiles;
    this.job.progress({
      ...{ total, failed, skipped },
      // Cells of scenes in progress count, so that the counts agree with the share. If a scene fails, its cells have failed.
      done: Math.max(done, this.sceneProgress.cellsDone - failed - skipped),
      share: this.sceneProgress.overall(this.inputs - this.inputsDescribed),
      isReset: true,
    });
  }

  /** Null if the work failed; the failure is recorded. Throws if the job is cancelled. */
  private async recordFailure<T>(path: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (this.job.signal.aborted) throw error;
      if (outsideRegion.is(error)) {
        this.skip(path, 'it has no valid pixel in the region');
        return null;
      }
      this.addFailure(path, error);
      return null;
    }
  }

  private addFailure(path: string, error: unknown): void {
    const { code, message } = error instanceof TilewrightError ? error : ingestFailed(path, messageOf(error));
    const failure = { path: this.toUserNames(path), code, message: this.toUserNames(message) };
    this.failed.push(failure);
    this.metrics?.failures.inc();
    const named = failure.message.includes(failure.path) ? '' : `${failure.path}: `;
    this.job.log('error', `${named}${failure.message} [${code}]`);
  }
}
