/** Lists of scenes, and the deletion of tiles, scenes and collections. Imports `query` and `storage`. */
export { type ListedScene, sceneRoutes } from './scene-routes.js';
