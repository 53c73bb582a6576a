/**
 * Writers of scenes and derived tiles, deletions, and the stores of models and textures. Invariant: each change is made under a write lock,
 * and its commits leave a consistent state. Imports the folders `cache` (types), `catalogue`, `commit`, `data-folder` (types), `files`,
 * `object-store` (types) and `records` (types) and the part `async`.
 */
export * from './delete-stored-scenes.js';
export { DerivedWrite, type ObsoleteTile } from './derived-write.js';
export { SceneWrite } from './scene-write.js';
export { ModelStore, type NewModel } from './storage-model-store.js';
export { bestVersion, modelRecordOf, versionNamed, versionsOf } from './storage-model-versions.js';
export { TextureStore } from './storage-texture-store.js';
export { isSceneInStore, isSceneIntact } from './stored-scene-integrity.js';
