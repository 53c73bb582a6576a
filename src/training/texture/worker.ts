/** Worker thread that computes textures of tiles and clusters of textures. */
import { handleTasksByKind } from '../../async/index.js';
import type { AcquisitionFiles } from '../acquisitions.js';
import { clusterTextures, type FoundClusters } from './clusters.js';
import { textureOfTile } from './glcm.js';

const HANDLERS = {
  /** The date must have red, green and blue. */
  texture: ({ date }: { date: AcquisitionFiles }) => textureOfTile(date),
  cluster: (task: { textures: Float64Array[]; clusters?: number; seed: number }): FoundClusters =>
    clusterTextures(task.textures, task),
};

export type TextureHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, () => []);
