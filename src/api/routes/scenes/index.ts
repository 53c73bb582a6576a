/** Lists of scenes, and the deletion of tiles, scenes and collections. Imports `query` and `storage`. */
export { sceneRoutes } from './routes.js';
