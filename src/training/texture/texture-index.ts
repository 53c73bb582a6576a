/** Places by what they look like, in memory. */
import { setImmediate } from 'node:timers/promises';
import type { Storage, TextureRecord } from '../../storage/index.js';
import { fitScaling, squaredDistance, standardise } from './feature-vectors.js';
import { nearestIndex } from './k-means.js';
import { storedTextures } from './stored-textures.js';

export interface TextureNeighbour extends Omit<TextureRecord, 'values'> {
  /** Euclidean, in standardised values; 0: they look the same. */
  distance: number;
  /** The number of its cluster, from 0; absent where no clusters were made. */
  cluster?: number;
}

/** Places that are compared with all clusters before others have their turn. */
const YIELD_EVERY = 100;

/** All textures of a collection. */
interface CollectionTextures {
  places: Omit<TextureRecord, 'values'>[];
  /** By geocode. */
  rows: Map<string, number>;
  /** Standardised, one place after another. */
  vectors: Float32Array;
  clusters: Uint16Array | undefined;
  /** Of the clusters, in standardised values. */
  centres: number[][];
}

/** Where a place lies among the others. */
export interface ClusterMembership {
  /** Absent where no clusters were made. */
  cluster?: number;
  /** Euclidean distance to the centre of its cluster, in standardised values. */
  fromCentre?: number;
}

/**
 * Invariant: what is kept of a collection was read at its number of changes or later, and is used until there are more. It is read once for all
 * who ask meanwhile.
 */
export class TextureIndex {
  private readonly cached = new Map<string, { changes: number; known: Promise<CollectionTextures> }>();

  constructor(private readonly storage: Storage) {}

  /**
   * The `count` places that look most like one of the same collection, the nearest first, without itself; and itself. Of places that
   * `fits` turns down none is there. Undefined where its texture is not known.
   */
  async nearest(
    collection: string,
    geocode: string,
    count: number,
    fits: (place: { geocode: string; cluster?: number }) => boolean = () => true,
  ): Promise<{ place: TextureNeighbour; similar: TextureNeighbour[] } | undefined> {
    const known = await this.known(collection);
    const row = known.rows.get(geocode);
    if (row === undefined) return undefined;
    const placeAt = (at: number, distance: number): TextureNeighbour => ({
      ...known.places[at],
      distance,
      ...(known.clusters && { cluster: known.clusters[at] }),
    });
    const fitting = (at: number) =>
      at !== row && fits({ geocode: known.places[at].geocode, cluster: known.clusters?.[at] });
    const found = nearestRows(known.vectors, known.places.length, row, count, fitting);
    return { place: placeAt(row, 0), similar: found.map(([at, distance]) => placeAt(at, distance)) };
  }

  /** All places of a collection whose texture is known, by geocode. */
  async places(collection: string): Promise<{ geocode: string; cluster?: number }[]> {
    const { places, clusters } = await this.known(collection);
    return places.map(({ geocode }, row) => ({ geocode, cluster: clusters?.[row] }));
  }

  /** Undefined where its texture is not known. */
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
    const kept = this.cached.get(collection);
    if (kept?.changes === changes) return kept.known;
    const known = this.read(collection);
    const entry = { changes, known };
    this.cached.set(collection, entry);
    const forget = () => {
      if (this.cached.get(collection) === entry) this.cached.delete(collection);
    };
    // Collections that are gone are not kept. Who waits has the error; the next reads again.
    known.then(({ places }) => places.length === 0 && forget(), forget);
    return known;
  }

  private async read(collection: string): Promise<CollectionTextures> {
    const textures = await storedTextures(this.storage, collection);
    const clustering = await this.storage.textures.getClustering(collection);
    const scaling = clustering?.scaling ?? fitScaling(textures.map(({ values }) => values));
    const size = textures[0]?.values.length ?? 0;
    const vectors = new Float32Array(size * textures.length);
    const clusters = clustering && new Uint16Array(textures.length);
    for (const [row, { values }] of textures.entries()) {
      const vector = standardise(values, scaling);
      vectors.set(vector, row * size);
      if (clusters) clusters[row] = nearestIndex(vector, clustering.centres);
      if (row % YIELD_EVERY === 0) await setImmediate();
    }
    return {
      places: textures.map(({ values: _, ...place }) => place),
      rows: new Map(textures.map(({ geocode }, row) => [geocode, row])),
      vectors,
      clusters,
      centres: clustering?.centres ?? [],
    };
  }
}

/** The rows nearest to one of `rows` vectors, of those that fit, nearest first; of equals the first. */
function nearestRows(
  vectors: Float32Array,
  rows: number,
  row: number,
  count: number,
  fits: (row: number) => boolean,
): [row: number, distance: number][] {
  const size = vectors.length / rows;
  const own = vectors.subarray(row * size, (row + 1) * size);
  // Kept in order; few rows get in, so that moving the others costs little.
  const found: [row: number, squared: number][] = [];
  let most = Infinity;
  for (let other = 0; other < rows; other++) {
    let squared = 0;
    const from = other * size;
    for (let i = 0; i < size; i++) {
      const difference = vectors[from + i] - own[i];
      squared += difference * difference;
    }
    // Also where a value is no number.
    if (!(squared < most) || !fits(other)) continue;
    let at = found.length;
    while (at > 0 && found[at - 1][1] > squared) at--;
    found.splice(at, 0, [other, squared]);
    if (found.length > count) found.pop();
    if (found.length === count) most = found[count - 1][1];
  }
  return found.map(([other, squared]) => [other, Math.sqrt(squared)]);
}
