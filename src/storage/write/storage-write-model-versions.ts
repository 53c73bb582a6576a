/** The versions in the record of a model. */
import type { ModelRecord, ModelVersionRecord, TrainedVersion } from '../records/index.js';

/** Number of newest versions of a model that are kept, besides the best ones. */
const KEPT_VERSIONS = 5;

/** All versions of a model, the latest first. */
export function versionsOf({ former = [], ...latest }: ModelRecord): ModelVersionRecord[] {
  return [latest, ...former.map((version) => ({ ...modelIdentity(latest), ...version }))];
}

/** The record of a model with these versions: at least one, the latest first. */
export function modelRecordOf([latest, ...former]: ModelVersionRecord[]): ModelRecord {
  return { ...latest, former: former.map(({ id, model, collection, grid, geocode, ...version }) => version) };
}

function modelIdentity({ id, model, collection, grid, geocode }: ModelVersionRecord) {
  return { id, model, collection, grid, geocode };
}

/**
 * The version with the least error among those that were validated on the same data as the latest; the newer of two equal
 * ones. `versions` has the latest first.
 */
export function bestVersion<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T {
  const [latest] = versions;
  const isBetter = (one: T, other: T) =>
    one.score !== undefined && one.score.data === other.score?.data && one.score.error < other.score.error;
  return versions.reduce((best, one) => (isBetter(one, best) ? one : best), latest!);
}

/** The version with this name, or the current `latest` or `best` one. */
export function versionNamed(model: ModelRecord, name: string): ModelVersionRecord | undefined {
  const versions = versionsOf(model);
  if (name === 'latest') return versions[0];
  return name === 'best' ? bestVersion(versions) : versions.find(({ version }) => version === name);
}

/**
 * The versions that are kept: the newest, the best, and the best before the latest, from which the job that made the latest may
 * start models of other cells. `versions` has the latest first.
 */
export function keptVersions<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T[] {
  const best = [versions, versions.slice(1)].filter(({ length }) => length > 0).map(bestVersion);
  return versions.filter((version, i) => i < KEPT_VERSIONS || best.includes(version));
}
