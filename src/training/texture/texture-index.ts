/** In-memory index of the textures of cells. */
import { runInTurns, toArray } from '../../async/index.js';
import type { ClusteringRecord, Storage, TextureRecord } from '../../storage/index.js';
import { nearestIndex, scalingSteps, squaredDistance, standardise } from './clusters.js';

export interface TextureNeighbour extends Omit<TextureRecord, 'values'> {
  /** Euclidean distance in standardised values; 0 for equal textures. */
  distance: number;
  /** Cluster number, from 0. Absent if there are no clusters. */
  cluster?: number;
}

/** Number of cells that a search compares in one step. */
const YIELD_EVERY = 1000;

/** All textures of a collection. */
interface CollectionTextures {
  cells: Omit<TextureRecord, 'values'>[];
  /** Row by geocode. */
  rows: Map<string, number>;
  /** Standardised values, one cell after another. */
  vectors: Float32Array;
  clusters: Uint16Array | undefined;
  /** Centres of the clusters in standardised values. */
  centres: number[][];
}

/** The cluster of a cell, and its distance to the centre. */
interface ClusterMembership {
  /** Absent if there are no clusters. */
  cluster?: number;
  /** Euclidean distance to the centre of its cluster, in standardised values. */
  fromCentre?: number;
}

/**
 * Invariant: a cached collection was read at its change count or later, and is used until the count changes. Concurrent requests share
 * one read.
 */
export class TextureIndex {
  private readonly cached = new Map<string, { changes: number; known: Promise<CollectionTextures> }>();

  constructor(private readonly storage: Storage) {}

  /**
   * Returns the `count` most similar cells of the same collection that `fits` accepts, the nearest first, without the cell itself; and
   * the cell itself. Undefined if its texture is unknown.
   */
  async nearest(
    collection: string,
    geocode: string,
    count: number,
    fits: (cell: { geocode: string; cluster?: number }) => boolean = () => true,
  ): Promise<{ cell: TextureNeighbour; similar: TextureNeighbour[] } | undefined> {
    const known = await this.known(collection);
    const row = known.rows.get(geocode);
    if (row === undefined) return undefined;
    const cellAt = (at: number, distance: number): TextureNeighbour => ({
      ...known.cells[at],
      distance,
      ...(known.clusters && { cluster: known.clusters[at] }),
    });
    const fitting = (at: number) =>
      at !== row && fits({ geocode: known.cells[at].geocode, cluster: known.clusters?.[at] });
    const neighbours = await runInTurns(nearestRows(known.vectors, known.cells.length, row, count, fitting));
    return { cell: cellAt(row, 0), similar: neighbours.map(([at, distance]) => cellAt(at, distance)) };
  }

  /** Returns all cells of a collection with a known texture, by geocode. */
  async cells(collection: string): Promise<{ geocode: string; cluster?: number }[]> {
    const { cells, clusters } = await this.known(collection);
    return cells.map(({ geocode }, row) => ({ geocode, cluster: clusters?.[row] }));
  }

  /** Returns undefined if the texture is unknown. */
  async clusterMembership(collection: string, geocode: string): Promise<ClusterMembership | undefined> {
    const { rows, vectors, clusters, centres } = await this.known(collection);
    const row = rows.get(geocode);
    if (row === undefined || !clusters) return row === undefined ? undefined : {};
    const size = vectors.length / rows.size;
    const cluster = clusters[row];
    const vector = vectors.subarray(row * size, (row + 1) * size);
    return { cluster, fromCentre: Math.sqrt(squaredDistance(vector, centres[cluster])) };
  }

  private known(collection: string): Promise<CollectionTextures> {
    const changes = this.storage.textures.changes(collection);
    const cached = this.cached.get(collection);
    if (cached?.changes === changes) return cached.known;
    const known = this.read(collection);
    const entry = { changes, known };
    this.cached.set(collection, entry);
    const forget = () => {
      if (this.cached.get(collection) === entry) this.cached.delete(collection);
    };
    // Empty collections are not cached. A failed read rejects its callers, and the next call reads again.
    known.then(({ cells }) => cells.length === 0 && forget(), forget);
    return known;
  }

  private async read(collection: string): Promise<CollectionTextures> {
    const textures = await storedTextures(this.storage, collection);
    const clustering = await this.storage.textures.getClustering(collection);
    return runInTurns(collectionTextures(textures, clustering));
  }
}

function* collectionTextures(
  textures: TextureRecord[],
  clustering: ClusteringRecord | undefined,
): Generator<void, CollectionTextures> {
  const scaling = clustering?.scaling ?? (yield* scalingSteps(textures.map(({ values }) => values)));
  const size = textures[0]?.values.length ?? 0;
  const vectors = new Float32Array(size * textures.length);
  const clusters = clustering && new Uint16Array(textures.length);
  const cells: CollectionTextures['cells'] = [];
  const rows = new Map<string, number>();
  for (const [row, { values, ...cell }] of textures.entries()) {
    const vector = standardise(values, scaling);
    vectors.set(vector, row * size);
    if (clusters) clusters[row] = nearestIndex(vector, clustering.centres);
    cells.push(cell);
    rows.set(cell.geocode, row);
    yield;
  }
  return { cells, rows, vectors, clusters, centres: clustering?.centres ?? [] };
}

/** Returns the rows nearest to one of `rows` vectors among those that fit, nearest first, the first of equals. */
function* nearestRows(
  vectors: Float32Array,
  rows: number,
  row: number,
  count: number,
  fits: (row: number) => boolean,
): Generator<void, [row: number, distance: number][]> {
  const size = vectors.length / rows;
  const own = vectors.subarray(row * size, (row + 1) * size);
  // Sorted list; few rows are inserted, so shifting the others is cheap.
  const found: [row: number, squared: number][] = [];
  let limit = Infinity;
  for (let other = 0; other < rows; other++) {
    if (other % YIELD_EVERY === YIELD_EVERY - 1) yield;
    let squared = 0;
    const from = other * size;
    for (let i = 0; i < size; i++) {
      const difference = vectors[from + i] - own[i];
      squared += difference * difference;
    }
    // Negated, so that NaN is skipped as well.
    if (!(squared < limit) || !fits(other)) continue;
    let at = found.length;
    while (at > 0 && found[at - 1][1] > squared) at--;
    found.splice(at, 0, [other, squared]);
    if (found.length > count) found.pop();
    if (found.length === count) limit = found[count - 1][1];
  }
  return found.map(([other, squared]) => [other, Math.sqrt(squared)]);
}

/** Returns the stored textures of a collection by geocode. Textures with NaN are omitted, because they can be computed again. */
export async function storedTextures(
  storage: Pick<Storage, 'textures'>,
  collection: string,
): Promise<TextureRecord[]> {
  return (await toArray(storage.textures.list(collection))).filter(isSound);
}

export function isSound({ values }: TextureRecord): boolean {
  return values.every(Number.isFinite);
}
