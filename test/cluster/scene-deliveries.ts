/** The scenes that writers deliver, and their tiles as a single node makes them. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { writeTestScene } from '../support/scenes.js';
import { ask, askJson, COLLECTION, findAll, outcomeOf, startIngest, until } from './client.js';

export const SCENES = 12;
/** A scene has a first delivery, and corrected ones that cover other cells. */
export const DELIVERIES = 3;
/** The group of the tiles; the other image of their file is `mask`. */
const GROUPS = ['1000m', 'mask'];
/** Stands for all images of a file. */
export const WHOLE = 'whole';

export class Deliveries {
  readonly scenes: string[] = [];
  private readonly tiles = new Map<string, Set<string>>();
  private readonly sums = new Map<string, number>();

  private constructor(private readonly folder: string) {}

  /** Writes all deliveries below a folder, and lets the single node at `url` ingest them. */
  static async make(folder: string, url: string): Promise<Deliveries> {
    const made = new Deliveries(folder);
    for (let s = 0; s < SCENES; s++) made.scenes.push(`s${`${s}`.padStart(2, '0')}`);
    for (let delivery = 0; delivery < DELIVERIES; delivery++) {
      await mkdir(join(folder, `${delivery}`), { recursive: true });
      for (const [s, scene] of made.scenes.entries()) await made.make(scene, s, delivery, url);
      await made.read(url, delivery);
    }
    return made;
  }

  pathOf(scene: string, delivery: number): string {
    return join(this.folder, `${delivery}`, `${scene}.tif`);
  }

  /** Ids of the tiles of a delivery. */
  tilesOf(scene: string, delivery: number): ReadonlySet<string> {
    return this.tiles.get(`${scene} ${delivery}`) ?? new Set();
  }

  groups(): readonly string[] {
    return GROUPS;
  }

  /** CRC-32 of an image; of the group `WHOLE`, that of the file with all images. */
  sumOf(tile: string, group: string, delivery: number): number | undefined {
    return this.sums.get(`${tile} ${group} ${delivery}`);
  }

  /** A scene of about 80 km by 60 km, which touches about fifteen cells, each in its own slot. */
  private async make(scene: string, s: number, delivery: number, url: string): Promise<void> {
    const place = { x: 450_000 + 11_000 * s + 9000 * delivery, y: 5_300_000 + 7000 * s };
    const path = this.pathOf(scene, delivery);
    const size = { pixel: 1000, width: 80 - 20 * delivery, height: 60 };
    await writeTestScene(path, { seed: 1 + s + 100 * delivery, ...size, ...place });
    const job = await startIngest(
      url,
      { id: scene, path, delivery },
      `${scene} ${delivery}`.replace(' ', '-'),
    );
    await until(`delivery ${delivery} of ${scene}`, 60_000, async () => {
      const ended = await outcomeOf(url, job);
      if (ended && ended.outcome !== 'done') throw new Error(ended.why);
      return ended !== undefined;
    });
  }

  private async read(url: string, delivery: number): Promise<void> {
    const { tiles } = await findAll(url);
    for (const { id, scene } of tiles) {
      const key = `${scene} ${delivery}`;
      this.tiles.set(key, (this.tiles.get(key) ?? new Set()).add(id));
      let whole = 0;
      for (const group of GROUPS) {
        const bytes = Buffer.from(await (await ask(url, `/tiles/${id}/${group}.tif`)).arrayBuffer());
        this.sums.set(`${id} ${group} ${delivery}`, crc32(bytes));
        whole = crc32(bytes, whole);
      }
      this.sums.set(`${id} ${WHOLE} ${delivery}`, whole);
    }
    const { collections } = await askJson<{ collections: { id: string }[] }>(url, '/collections');
    if (collections.length !== 1 || collections[0]!.id !== COLLECTION)
      throw new Error('the node was not empty');
  }
}
