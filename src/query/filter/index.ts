/**
 * The filter tree, its expressions and relations, and their limits. Invariant: plain JSON, so equal searches have equal digests; names in
 * it are part of messages between nodes. Imports the folder `geometry`.
 */

export { type ArithmeticOp, arithmeticOps, calculate } from './filter-arithmetic.js';
export { type ComparisonOp, comparisons } from './filter-comparisons.js';
export * from './filter-expression.js';
export { foldPattern, likeMatcher, likePrefix, literalPattern } from './filter-like-pattern.js';
export * from './filter-properties.js';
export { checkRemoteFilter } from './filter-remote-check.js';
export * from './filter-temporal-relations.js';
export { type FoldingFunction, foldingFunctions } from './filter-text-folding.js';
export * from './filter-tree.js';
