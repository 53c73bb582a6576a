/** Downloads a file as a whole, from a host that does not send parts of it when asked for its start. */
import { badRemoteRange, remoteChanged } from '../errors.js';
import { withoutSecrets } from './host-policy.js';
import type { HttpClient } from './http-client.js';
import { sizeOfRange } from './remote-file.js';

const PARTS = 206;
const NOT_SATISFIABLE = 416;

/** Bytes at the end of a broken answer that are read again. */
const OVERLAP_BYTES = 65_536;

/** Identifies the bytes of a file. */
export interface FileVersion {
  url: string;
  /** ETag, or else the time of the last change. */
  version: string | undefined;
  size: number | undefined;
}

export interface DownloadTarget {
  /** Called before the bytes from the first one on, possibly more than once. Returns false if the bytes are not needed. */
  start(file: FileVersion): Promise<boolean>;
  write(bytes: Buffer, position: number): Promise<void>;
}

/**
 * Returns the number of bytes. If the connection breaks, the download continues where it has ended, provided that the host has sent a
 * strong ETag and then sends parts; otherwise it starts again. Throws TW_REMOTE_...
 */
export async function downloadFile(
  client: HttpClient,
  url: string,
  target: DownloadTarget,
  { maxBytes, signal }: { maxBytes: number; signal?: AbortSignal },
): Promise<number> {
  let position = 0;
  let version: string | undefined;
  let end: number | undefined;
  const { status } = await client.request(url, {
    ...{ maxBytes, signal },
    accept: [PARTS, NOT_SATISFIABLE],
    isFile: true,
    sink: {
      headers: (): Record<string, string> => {
        // A proxy can end a broken answer with other bytes, and a connection can break after the last byte.
        position = Math.max(0, position - OVERLAP_BYTES);
        if (position === 0 || version === undefined || !/^"/.test(version)) return {};
        return { range: `bytes=${position}-`, 'if-range': version };
      },
      start: ({ status, headers }) => {
        const found = headers.etag ?? headers['last-modified'];
        if (status !== PARTS) {
          position = 0;
          end = undefined;
          version = found;
          const length = headers['content-length'];
          return target.start({ url, version, size: length === undefined ? undefined : Number(length) });
        }
        if (position === 0 || found !== version) throw remoteChanged(withoutSecrets(url));
        const size = sizeOfRange(url, { offset: position, bytes: Number.POSITIVE_INFINITY }, headers);
        if (size > maxBytes)
          throw badRemoteRange(withoutSecrets(url), `the file has ${size} bytes, more than ${maxBytes}`);
        end = size;
        return true;
      },
      write: async (chunk) => {
        await target.write(chunk, position);
        position += chunk.length;
      },
    },
  });
  if (status === NOT_SATISFIABLE) throw remoteChanged(withoutSecrets(url));
  if (end !== undefined && position !== end)
    throw badRemoteRange(withoutSecrets(url), `it sent ${position} of ${end} bytes`);
  return position;
}
