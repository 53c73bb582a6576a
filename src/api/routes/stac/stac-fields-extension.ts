/** The `fields` extension 1.0: selects the members of Items. */

export interface Fields {
  /** The members before `include` and `exclude` are applied. */
  base: 'all' | 'default' | 'minimal';
  include: string[];
  exclude: string[];
}

/** Enough to request the Item again. */
const MINIMAL = ['type', 'stac_version', 'id', 'collection'];
/** The members of a valid Item. */
const DEFAULT = [...MINIMAL, 'geometry', 'bbox', 'links', 'assets', 'properties.datetime'];

/** Parses `id,+geometry,-assets` or an object of two lists. Undefined means all members. */
export function parseFields(given: unknown): Fields | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string') {
    const names = given
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const include = names.filter((name) => !name.startsWith('-')).map((name) => name.replace(/^\+/, ''));
    const exclude = names.filter((name) => name.startsWith('-')).map((name) => name.slice(1));
    return { base: include.length > 0 ? 'minimal' : 'default', include, exclude };
  }
  const lists = given as { include?: string[] | null; exclude?: string[] | null };
  const include = lists.include ?? [];
  const exclude = lists.exclude ?? [];
  const onlyExcludes = lists.include === undefined && exclude.length > 0;
  return { base: include.length > 0 ? 'minimal' : onlyExcludes ? 'all' : 'default', include, exclude };
}

type Members = Record<string, unknown>;

/**
 * An Item with only the wanted members. Members of `properties` are named with or without `properties.`. If `include` and `exclude`
 * conflict, the longer path wins, and `include` wins for equal paths.
 */
export function selectFields(item: object, fields: Fields | undefined): object {
  if (!fields) return item;
  const pathOf = (name: string) =>
    name.includes('.') || name in item ? name.split('.') : ['properties', name];
  const base = { all: Object.keys(item), default: DEFAULT, minimal: MINIMAL }[fields.base];
  const selected: Members = {};
  for (const name of base) copy(item as Members, selected, pathOf(name));
  // Without `type` the Item would not be GeoJSON.
  const excluded = fields.exclude.filter((name) => name !== 'type');
  const rules = [
    ...excluded.map((name) => ({ path: pathOf(name), isIncluded: false })),
    ...fields.include.map((name) => ({ path: pathOf(name), isIncluded: true })),
  ];
  for (const { path, isIncluded } of rules.sort((a, b) => a.path.length - b.path.length)) {
    if (isIncluded) copy(item as Members, selected, path);
    else remove(selected, path);
  }
  return selected;
}

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Copies the value at a path; objects along the path are created. */
function copy(from: Members, to: Members, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name];
  if (rest.length === 0) to[name] = value;
  else if (isMembers(value)) {
    to[name] = Object.hasOwn(to, name) ? { ...(to[name] as Members) } : {};
    copy(value, to[name] as Members, rest);
  }
}

function remove(from: Members, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name];
  if (rest.length === 0) delete from[name];
  else if (isMembers(value)) {
    from[name] = { ...value };
    remove(from[name] as Members, rest);
  }
}
