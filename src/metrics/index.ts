export { Histogram } from './histogram.js';
