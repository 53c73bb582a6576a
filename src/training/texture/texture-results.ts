/** Results of the `texture` job. */
import type { GridName } from '../../grid/index.js';
import type { ClusteringRecord } from '../../storage/index.js';

export interface TextureResults {
  /** Number of cells whose texture was computed. */
  textures: number;
  /** Number of cells that keep their texture: their image is the same, or has too few clear pixels. */
  unchanged: number;
  /** Numbers of cells without a texture, by reason. */
  skipped: Record<string, number>;
  /** The first failures. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Clusters of all cells of each collection with a known texture. */
  collections: ClusteredCollection[];
}

export interface ClusteredCollection extends Pick<ClusteringRecord, 'collection' | 'places' | 'curve'> {
  grid: GridName;
  /** The largest first. */
  clusters: TextureCluster[];
}

export interface TextureCluster {
  places: string[];
  /** The cell nearest to the centre of the cluster. */
  middle: string;
}
