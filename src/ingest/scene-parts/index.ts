/**
 * In a cluster, the owners of cells make the tiles of a remote scene, so that each node fetches its own pixels. Invariant: one write
 * commits the tiles of all nodes together. Imports files of a folder above, the folders `cut`, `plan` and `remote` and the parts `async`,
 * `dht`, `remote` and `storage`.
 */
export { fetchAndCut } from './make-on-owners.js';
export { prepareTiles } from './prepare-tiles.js';
export { ScenePartClient, type ScenePartCluster } from './scene-part-client.js';
export {
  SCENE_PART_PATH,
  SCENE_PART_SCHEMA,
  type ScenePartEvent,
  type ScenePartRequest,
  type ScenePartResult,
  type ScenePartSource,
} from './scene-part-messages.js';
