/**
 * Lists of scenes, and the deletion of tiles, scenes and collections. Imports files of a folder above (types), the folders `http`,
 * `routes/stac` and `schemas` and the parts `async`, `query` and `storage` (types).
 */
export { type ListedScene, sceneRoutes } from './scene-routes.js';
