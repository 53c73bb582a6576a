/**
 * Linear transforms from statistics: PCA and MNF, whitening, linear discriminants. Invariant: they are computed in float64, and singular
 * covariances are refused. Imports the folders `numeric` and `reproducible-sums` (types).
 */
export { discriminant, withinClasses } from './discriminant-transform.js';
export { pcaOrMnf } from './pca-mnf-transform.js';
export { whitening } from './whitening-transform.js';
