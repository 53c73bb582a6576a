/** Recognises archives that hold one file with its side files. */
import { basename, parse } from 'node:path';

/**
 * The file for which an archive of the same name and `.tar` was made: `ingest --upload` packs a file with its side files. The
 * side files are then not inputs, and a STAC Item among them describes the file. Undefined for other archives.
 */
export function fileOfArchive(archive: string, files: string[]): string | undefined {
  const name = basename(archive, '.tar');
  if (name === basename(archive) || !files.includes(name)) return undefined;
  const { name: stem, ext } = parse(name);
  const isHeader = ext.toLowerCase() === '.hdr';
  // The image of an ENVI header may have any extension, or none.
  const image = isHeader ? files.find((file) => file !== name && parse(file).name === stem) : name;
  const sideFiles = [name, image, `${image}.msk`, `${image}.aux.xml`, `${stem}.hdr`, `${name}.hdr`];
  const others = files.filter((file) => !sideFiles.includes(file));
  const isItem = (file: string) => /^[^/]+\.json$/i.test(file);
  return others.length === 0 || (others.length === 1 && isItem(others[0])) ? name : undefined;
}
