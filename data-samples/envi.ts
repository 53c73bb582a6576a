/** Writes ENVI files: an image of raw numbers, and a text header. */
import { type FileHandle, open, writeFile } from 'node:fs/promises';

/** ENVI's numbers for data types. */
const DATA_TYPES = { uint8: 1, int16: 2, float32: 4 } as const;

export interface EnviImage {
  samples: number;
  lines: number;
  bands: number;
  type: keyof typeof DATA_TYPES;
  interleave: 'bsq' | 'bil';
  /** `ENVI Standard` by default. */
  fileType?: string;
  /** Further fields; a list is written in braces. */
  fields: Record<string, string | number | readonly (string | number)[]>;
}

/**
 * Writes `path`, little-endian, from pieces that follow each other in the file, and the header of the same name with `.hdr` for its
 * extension.
 */
export async function writeEnvi(
  path: string,
  image: EnviImage,
  pieces: Iterable<Uint8Array | Int16Array | Float32Array>,
): Promise<void> {
  await writeFile(path.replace(/\.\w+$/, '.hdr'), headerText(image));
  const file = await open(path, 'w');
  try {
    await writePieces(file, pieces);
  } finally {
    await file.close();
  }
}

async function writePieces(file: FileHandle, pieces: Parameters<typeof writeEnvi>[2]): Promise<void> {
  for (const piece of pieces)
    await file.writeFile(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
}

function headerText({ samples, lines, bands, type, interleave, fileType, fields }: EnviImage): string {
  const all = {
    ...{ samples, lines, bands },
    'header offset': 0,
    'file type': fileType ?? 'ENVI Standard',
    'data type': DATA_TYPES[type],
    interleave,
    'byte order': 0,
    ...fields,
  };
  const text = (value: EnviImage['fields'][string]) =>
    typeof value === 'object' ? `{${value.join(', ')}}` : value;
  return `ENVI\n${Object.entries(all)
    .map(([name, value]) => `${name} = ${text(value)}\n`)
    .join('')}`;
}
