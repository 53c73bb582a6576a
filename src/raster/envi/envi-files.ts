/** Finds the two files of an ENVI image: a text header, and raw numbers without any metadata. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { sizeMismatch, unsupported } from '../errors.js';

const isHeaderName = (name: string) => extname(name).toLowerCase() === '.hdr';
const stemOf = (name: string) => basename(name, extname(name));

/**
 * The header beside an image: `cube.hdr` or `cube.bil.hdr` for `cube.bil`; undefined if there is none. Links are ignored: an
 * allowed file must not lead to one that is not allowed.
 */
export async function findHeader(image: string): Promise<string | undefined> {
  const name = basename(image);
  if (isHeaderName(name)) return undefined;
  const wanted = [`${name}.hdr`, `${stemOf(name)}.hdr`].map((one) => one.toLowerCase());
  const entries = await readdir(dirname(image), { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  const found = wanted.flatMap((one) => names.find((other) => other.toLowerCase() === one) ?? []);
  return found[0] === undefined ? undefined : join(dirname(image), found[0]);
}

/**
 * The image of a header: `cube`, `cube.bil`, `cube.dat` or any other extension for `cube.hdr`, whichever has the `bytes` that
 * the header describes. Throws TW_RASTER_SIZE_DIFFERS, with the sizes of the candidates, if no file has this size, and
 * TW_RASTER_UNSUPPORTED if several have it.
 */
export async function findImage(header: string, bytes: number, described: string): Promise<string> {
  const stem = stemOf(header).toLowerCase();
  const entries = await readdir(dirname(header));
  const names = entries.filter(
    (name) => !isHeaderName(name) && (name.toLowerCase() === stem || stemOf(name).toLowerCase() === stem),
  );
  const files: { path: string; name: string; size: number }[] = [];
  for (const name of names) {
    const path = join(dirname(header), name);
    const info = await stat(path);
    if (info.isFile()) files.push({ path, name, size: info.size });
  }
  const whole = files.filter(({ size }) => size === bytes);
  if (whole.length === 1) return whole[0]!.path;
  if (whole.length > 1)
    throw unsupported(
      header,
      `${whole.map(({ name }) => name).join(' and ')} both have the ${bytes} bytes that it describes; name the image instead of the header`,
    );
  const found = files
    .map(({ name, size }) => `${name} has ${describeSizeDifference(size, bytes)}`)
    .join(', ');
  throw sizeMismatch(header, described, bytes, found || `and no file ${stemOf(header)}.* is beside it`);
}

/** For example "9175041 bytes, 1 more: is header offset right?". */
export function describeSizeDifference(found: number, expected: number): string {
  const more = found - expected;
  return more > 0
    ? `${found} bytes, ${more} more (is "header offset" right?)`
    : `${found} bytes, ${-more} less`;
}
