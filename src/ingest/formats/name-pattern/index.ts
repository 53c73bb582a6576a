/**
 * Rasters whose file names carry facts: the patterns of `--name-pattern`, and scenes of the files that a pattern groups. Invariant:
 * matching takes polynomial time for any pattern and any name. May import formats/shared and formats/generic.
 */
export { type NameReading, readName, sceneKey } from './match-name-pattern.js';
export { checkNamePattern, type NamePattern, parseNamePattern } from './name-pattern.js';
export { namedRasters } from './named-rasters.js';
