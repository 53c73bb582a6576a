/** What the `texture` job makes. */
import type { GridName } from '../../grid/index.js';
import type { ClusteringRecord } from '../../storage/index.js';

export interface TextureResults {
  /** Places whose texture was computed. */
  textures: number;
  /** Places that keep the texture they had: their image is the same, or shows too little. */
  unchanged: number;
  /** Places without a texture, by the reason. */
  skipped: Record<string, number>;
  /** The first that failed, and why. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Of all places of each collection whose texture is known. */
  collections: ClusteredCollection[];
}

export interface ClusteredCollection extends Pick<ClusteringRecord, 'collection' | 'places' | 'curve'> {
  grid: GridName;
  /** The largest first. */
  clusters: TextureCluster[];
}

export interface TextureCluster {
  places: string[];
  /** The place that is nearest to the cluster's centre. */
  middle: string;
}
