/** A file with the state of a training: a line of JSON, values as float32, and the CRC-32 of both, all little-endian. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

const CHECKSUM_BYTES = 4;

/** Identifies the task with everything that affects its result. */
interface TaskState {
  task: string;
}

/** A process that is killed leaves the former file or the new one. A power cut may leave a damaged one, which is not read. */
export async function writeStateFile(path: string, state: TaskState, values: Float32Array[]): Promise<void> {
  const bytes = Buffer.concat([
    Buffer.from(`${JSON.stringify(state)}\n`),
    ...values.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
    Buffer.alloc(CHECKSUM_BYTES),
  ]);
  const end = bytes.length - CHECKSUM_BYTES;
  bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  await writeFile(`${path}.new`, bytes);
  await rename(`${path}.new`, path);
}

/** Returns undefined if the file is missing, incomplete or of another task. */
export async function readStateFile<State extends TaskState>(
  path: string,
  task: string,
): Promise<{ state: State; values: Buffer } | undefined> {
  const file = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!file || file.length < CHECKSUM_BYTES) return undefined;
  const bytes = file.subarray(0, -CHECKSUM_BYTES);
  if (crc32(bytes) !== file.readUInt32LE(bytes.length)) return undefined;
  const end = bytes.indexOf('\n');
  const state = JSON.parse(bytes.subarray(0, end).toString()) as State;
  return state.task === task ? { state, values: bytes.subarray(end + 1) } : undefined;
}
