/**
 * The filter tree, its expressions and relations, and their limits. Invariant: plain JSON, so equal searches have equal digests;
 * names in it are part of messages between nodes. May import `geometry`.
 */
export { type ArithmeticOp, arithmeticOps, calculate } from './arithmetic.js';
export { checkRemoteFilter } from './check-remote-filter.js';
export { comparisons } from './comparisons.js';
export * from './expression.js';
export * from './filter-tree.js';
export { type FoldingFunction, foldingFunctions } from './fold-text.js';
export { foldPattern, likeMatcher, likePrefix, literalPattern } from './like-pattern.js';
export * from './properties.js';
export * from './temporal-relations.js';
