/**
 * Writers of scenes and derived tiles, deletions, and the stores of models and textures. Invariant: each change is made under a write lock,
 * and its commits leave a consistent state. May import all folders of `storage` except `verify`.
 */
export * from './delete-scenes.js';
export { DerivedWrite, type ObsoleteTile } from './derived-write.js';
export { ModelStore, type NewModel } from './model-store.js';
export { bestVersion, modelRecordOf, versionNamed, versionsOf } from './model-versions.js';
export { isSceneInStore, isSceneIntact } from './scene-integrity.js';
export { SceneWrite } from './scene-write.js';
export { TextureStore } from './texture-store.js';
