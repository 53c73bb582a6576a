/**
 * Linear transforms from statistics: PCA and MNF, whitening, linear discriminants. Invariant: they are computed in float64, and singular
 * covariances are refused. Imports the folders numeric and reproducible-sums.
 */
export { discriminant, withinClasses } from './linear-discriminant.js';
export { type Components, type ComponentsTask, pcaOrMnf } from './pca-mnf.js';
export { whitening } from './whitening.js';
