/**
 * Writers of scenes and derived tiles, deletions, and the stores of models and textures. Invariant: each change is made under a write lock,
 * and its commits leave a consistent state. Imports the folders `cache` (types), `catalogue`, `commit`, `data-folder` (types), `files`,
 * `object-store` (types) and `records` (types) and the part `async`.
 */

export * from './collection-write.js';
export { type KeepCell, type ScenePart, SceneWrite } from './scene-write.js';
export { intactCellsInStore, intactCellsOnDisk } from './scene-write-integrity.js';
export { DerivedWrite, type ObsoleteTile } from './storage-write-derived.js';
export { ModelStore, type NewModel } from './storage-write-model.js';
export { bestVersion, modelRecordOf, versionNamed, versionsOf } from './storage-write-model-versions.js';
export { TextureStore } from './storage-write-texture.js';
