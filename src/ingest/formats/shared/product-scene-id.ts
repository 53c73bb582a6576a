/** Derives ids of scenes from the names of their files. */
import { createHash } from 'node:crypto';
import { basename, extname } from 'node:path';

export const stemOf = (name: string) => basename(name, extname(name));

/** A file name as an id. If characters were replaced, a digest keeps different names different. */
export function slugify(name: string): string {
  const clean = name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 80);
  if (clean === name) return name;
  return `${clean || 'scene'}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}
