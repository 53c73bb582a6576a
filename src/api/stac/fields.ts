/** The `fields` extension: which members of Items an answer has. */
import { badRequest } from '../errors.js';

export interface Fields {
  include: string[];
  exclude: string[];
}

/** So that what is left is an Item. */
const DEFAULTS = ['type', 'stac_version', 'id', 'collection', 'geometry', 'bbox', 'links', 'assets'].concat(
  'properties.datetime',
);

/** `id,+geometry,-assets` or an object of two lists. Undefined asks for everything. Throws TW_API_BAD_REQUEST. */
export function parseFields(given: unknown): Fields | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string') {
    const names = given
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    return {
      include: names.filter((name) => !name.startsWith('-')).map((name) => name.replace(/^\+/, '')),
      exclude: names.filter((name) => name.startsWith('-')).map((name) => name.slice(1)),
    };
  }
  const { include, exclude } = (given ?? {}) as { include?: unknown; exclude?: unknown };
  return { include: listOf('include', include), exclude: listOf('exclude', exclude) };
}

function listOf(name: string, value: unknown): string[] {
  const list = value ?? [];
  if (Array.isArray(list) && list.every((one) => typeof one === 'string')) return list;
  throw badRequest(`fields.${name} is not a list of names`);
}

/**
 * An Item with the wanted members only. Members of `properties` are named with or without `properties.`; those of other
 * members by their path. What is included comes to the default set; what is excluded goes from both.
 */
export function selectFields<T extends object>(item: T, fields: Fields | undefined): object {
  if (!fields) return item;
  const pathOf = (name: string) => {
    const path = name.split('.');
    return path[0]! in item || path.length > 1 ? path : ['properties', name];
  };
  const selected: Members = {};
  for (const name of [...DEFAULTS, ...fields.include]) copy(item as Members, selected, pathOf(name));
  for (const name of fields.exclude) remove(selected, pathOf(name));
  return selected;
}

type Members = Record<string, unknown>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Copies what a path leads to; objects on the way are new ones. */
function copy(from: Members, to: Members, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name];
  if (rest.length === 0) to[name] = isMembers(value) ? { ...value } : value;
  else if (isMembers(value)) {
    if (!Object.hasOwn(to, name)) to[name] = {};
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
