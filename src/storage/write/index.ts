/**
 * Writers of scenes and derived tiles, deletions, and the stores of models and textures. Invariant: each change is made under a write lock,
 * and its commits leave a consistent state. Imports the folders `cache` (types), `catalogue`, `commit`, `data-folder` (types), `files`,
 * `object-store` (types) and `records` (types) and the part `async`.
 */

export { DerivedWrite, type ObsoleteTile } from './derived-write.js';
export { SceneWrite } from './scene-write.js';
export { isSceneInStore, isSceneIntact } from './scene-write-integrity.js';
export { ModelStore, type NewModel } from './write-model-store.js';
export { bestVersion, modelRecordOf, versionNamed, versionsOf } from './write-model-versions.js';
export * from './write-scene-deletions.js';
export { TextureStore } from './write-texture-store.js';
