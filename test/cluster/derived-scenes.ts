/** Scenes from which the cluster derives tiles, and the derived tiles that a single node makes from each delivery. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { writeTestScene } from '../support/scenes.js';
import { ask, findAll, outcomeOf, type SceneToIngest, startIngest, startJob, until } from './client.js';
import type { FoundTile } from './observe.js';
import { DELIVERIES } from './scene-deliveries.js';

/** The collection of these scenes, which keeps their tiles out of the searches of readers. */
export const DERIVED_COLLECTION = 'layers';
const SCENES = ['l0', 'l1'];
const GROUPS = ['100m', 'mask'];
const filter = { collections: [DERIVED_COLLECTION] };
/** Jobs over all of these scenes; the training is as short as possible. */
export const SPLIT = { process: 'split', inputs: { precision: 5, filter } };
export const TRAIN = { process: 'train', inputs: { model: 'ndvi', mode: 'partitioned', epochs: 1, filter } };
export const PREDICT = { process: 'predict', inputs: { model: 'ndvi', filter } };
const JOB_TIMEOUT_MS = 60_000;

/** CRC-32 of files, by `<tile>/<group>`. */
export type Sums = Map<string, number>;

/** All deliveries of a scene cover the same area with different pixels, so a split makes the same tiles with other bytes. */
export class DerivedScenes {
  readonly scenes: readonly string[] = SCENES;
  private readonly split = new Map<string, Sums>();

  private constructor(private readonly folder: string) {}

  /** Writes the scenes below a folder; the single node at `url` ingests and splits each delivery. */
  static async make(folder: string, url: string): Promise<DerivedScenes> {
    const made = new DerivedScenes(folder);
    for (let delivery = 0; delivery < DELIVERIES; delivery++) {
      await mkdir(join(folder, `${delivery}`), { recursive: true });
      for (const [s, scene] of SCENES.entries()) {
        const path = made.pathOf(scene, delivery);
        // Each is within one cell, which is large enough for the patches of a model; the cells are in different slots.
        const place = { x: 486_000 + 26_000 * s, y: 5_333_000 };
        const size = { pixel: 100, width: 180, height: 160 };
        await writeTestScene(path, { seed: 50 + s + 10 * delivery, ...size, ...place });
        const key = `${scene}-${delivery}`;
        await ended(url, await startIngest(url, made.sceneOf(scene, delivery), key));
      }
      await ended(url, await startJob(url, SPLIT.process, SPLIT.inputs, `split-${delivery}`));
      const { tiles } = await findAll(url, { collection: DERIVED_COLLECTION, source: 'split' });
      for (const scene of SCENES)
        made.split.set(
          `${scene} ${delivery}`,
          await sumsOf(
            url,
            tiles.filter((tile) => tile.scene === scene),
          ),
        );
    }
    return made;
  }

  /** Options for ingesting a delivery. */
  sceneOf(id: string, delivery: number): SceneToIngest {
    return {
      id,
      delivery,
      path: this.pathOf(id, delivery),
      collection: DERIVED_COLLECTION,
      extras: { scale: 0.0001, maskBand: 5 },
    };
  }

  private pathOf(scene: string, delivery: number): string {
    return join(this.folder, `${delivery}`, `${scene}.tif`);
  }

  /** The files of all tiles that a split of a delivery makes. */
  splitOf(scene: string, delivery: number): Sums {
    return this.split.get(`${scene} ${delivery}`) ?? new Map();
  }
}

/** CRC-32 of all files of some tiles, as a node sends them. */
export async function sumsOf(url: string, tiles: FoundTile[]): Promise<Sums> {
  const sums: Sums = new Map();
  for (const { id } of tiles)
    for (const group of GROUPS) {
      const bytes = await (await ask(url, `/tiles/${id}/${group}.tif`)).arrayBuffer();
      sums.set(`${id}/${group}`, crc32(Buffer.from(bytes)));
    }
  return sums;
}

async function ended(url: string, job: string): Promise<void> {
  await until(`the end of job ${job}`, JOB_TIMEOUT_MS, async () => {
    const end = await outcomeOf(url, job);
    if (end && end.outcome !== 'done') throw new Error(end.why);
    return end !== undefined;
  });
}
