/**
 * Metric types that one part fills and another one exports. Invariant: reading a metric does not change it. Imports nothing.
 */
export { Histogram } from './histogram.js';
