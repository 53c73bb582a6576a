/** The versions that a model's record holds. */
import type { ModelRecord, ModelVersionRecord, TrainedVersion } from '../catalogue/records.js';

/** Newest versions of a model that are kept; others may stay beside them. */
const KEPT_VERSIONS = 5;

/** All versions of a model, the latest first. */
export function versionsOf({ former = [], ...latest }: ModelRecord): ModelVersionRecord[] {
  return [latest, ...former.map((version) => ({ ...modelIdentity(latest), ...version }))];
}

/** The record of a model that has these versions, at least one, the latest first. */
export function modelRecordOf([latest, ...former]: ModelVersionRecord[]): ModelRecord {
  return { ...latest, former: former.map(({ id, model, collection, grid, geocode, ...version }) => version) };
}

function modelIdentity({ id, model, collection, grid, geocode }: ModelVersionRecord) {
  return { id, model, collection, grid, geocode };
}

/**
 * The version with the least error among those, the latest first, that were validated on the data that the latest was validated on; the
 * newer of two that are as good.
 */
export function bestVersion<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T {
  const [latest] = versions;
  const isBetter = (one: T, other: T) =>
    one.score !== undefined && one.score.data === other.score?.data && one.score.error < other.score.error;
  return versions.reduce((best, one) => (isBetter(one, best) ? one : best), latest!);
}

/** `latest` and `best` stand for what they are at the moment. */
export function versionNamed(model: ModelRecord, name: string): ModelVersionRecord | undefined {
  const versions = versionsOf(model);
  if (name === 'latest') return versions[0];
  return name === 'best' ? bestVersion(versions) : versions.find(({ version }) => version === name);
}

/**
 * Those of some versions, the latest first, that stay: the newest, the best, and the best of those before the latest, from which the job
 * that made the latest may start other places.
 */
export function keptVersions<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T[] {
  const best = [versions, versions.slice(1)].filter(({ length }) => length > 0).map(bestVersion);
  return versions.filter((version, i) => i < KEPT_VERSIONS || best.includes(version));
}
