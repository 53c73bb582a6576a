/** Stored bands at the pixels of a picture. A folder of its own: how pixels are weighted is apart from what a picture shows. */
export { RESAMPLINGS, type Resampling, sampleBand } from './sample.js';
