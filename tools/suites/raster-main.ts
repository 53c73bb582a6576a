/** Prints the outcome of one raster file as JSON. */
import { rasterOutcome } from './raster.js';

console.log(JSON.stringify(await rasterOutcome(process.argv[2]!)));
