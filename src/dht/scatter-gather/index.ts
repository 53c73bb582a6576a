/**
 * Sends a query to the owners of slots and gathers their answers. Invariant: all answers of one query are as of one commit, and each slot
 * is answered for once or reported as unanswered. Imports files of a folder above (types), the folders `placement` and `rpc` (types) and
 * the part `storage`.
 */

export { OWNER_QUERY_PATH, type OwnerRequest, ScatterGather } from './scatter-gather.js';
export {
  localQueries,
  type OwnerQueries,
  type QueryBounds,
  type QueryKind,
  type QueryScope,
  type ScatterQuery,
  WHOLE_INDEX,
} from './scatter-gather-queries.js';
