import { type Storage, verify } from '../../src/storage/index.js';

/** Everything that `verify` finds: damage and orphans. */
export async function storageProblems(storage: Storage): Promise<object[]> {
  const { problems, orphans } = await verify(storage);
  return [...problems, ...orphans];
}
