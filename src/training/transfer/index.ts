/**
 * Chooses the models of other cells from which the training of a cell may start, and records their provenance. Invariant: a source is used
 * only if it beats its own mean baseline. Imports the folders `data` (types), `learners` (types), `registry` (types), `texture` (types) and
 * `warm-start` (types) and the parts `jobs` (types) and `storage`.
 */
export { awaitSeedModels, electClusterSeeds } from './transfer-cluster-seeds.js';
export {
  findSources,
  type SourceCandidates,
  sourceModelFiles,
  type TransferPlan,
  transferProvenance,
} from './transfer-plan.js';
export {
  availableSourceModels,
  isUsableSource,
  type SourceModelFinder,
  sourceModelFinder,
} from './transfer-source-models.js';
