/**
 * Words for errors of files, processes, the network and TLS. Their own messages quote codes and calls: `ENOENT: no such file or
 * directory, open 'a.tif'`.
 */

interface SystemError extends Error {
  code?: unknown;
  syscall?: string;
  path?: string;
  address?: string;
  hostname?: string;
  port?: number;
}

/** By the code of the error. `what` is the path, or `the file` if the error names none. */
const FILE_ERRORS: Record<string, (what: string) => string> = {
  EACCES: (what) => `this user may not access ${what}`,
  EBUSY: (what) => `${what} is in use`,
  EDQUOT: (what) => `the disk quota of this user does not allow to write ${what}`,
  EEXIST: (what) => `${what} exists already`,
  EFBIG: (what) => `${what} is too large for the file system`,
  EIO: (what) => `the disk reports an error for ${what}`,
  EISDIR: (what) => (what === FILE ? 'it is a folder, not a file' : `${what} is a folder, not a file`),
  ELOOP: (what) => `${what} has a loop of symbolic links`,
  EMFILE: () => 'this process has too many open files; raise its limit, for example with "ulimit -n 65536"',
  ENAMETOOLONG: (what) => `the name of ${what} is too long`,
  ENFILE: () => 'this machine has too many open files',
  ENOENT: (what) => `${what} does not exist`,
  ENOMEM: () => 'the machine has too little memory',
  ENOSPC: (what) => (what === FILE ? 'the disk is full' : `the disk is full, so ${what} was not written`),
  ENOTDIR: (what) => `${what} is not a folder, or is below a file`,
  ENOTEMPTY: (what) => `the folder ${what} is not empty`,
  EPERM: (what) => `this user may not change ${what}`,
  EROFS: (what) => `${what} is on a read-only file system`,
};
const FILE = 'the file';

/** `where` is the address that the error names, or `the other side`. */
const NETWORK_ERRORS: Record<string, (where: string) => string> = {
  EADDRINUSE: (where) => `another process uses ${where}`,
  EADDRNOTAVAIL: (where) => `this machine does not have the address ${where}`,
  EAI_AGAIN: (where) => `the name server does not answer for ${where}`,
  ECONNABORTED: (where) => `the connection to ${where} was interrupted`,
  ECONNREFUSED: (where) => `nothing listens at ${where}`,
  ECONNRESET: (where) => `${where} closed the connection`,
  EHOSTUNREACH: (where) => `no network route leads to ${where}`,
  ENETUNREACH: (where) => `no network route leads to ${where}`,
  ENOTFOUND: (where) => `no machine has the name ${where}`,
  EPIPE: (where) => `${where} closed the connection`,
  EPROTO: (where) => `${where} does not speak TLS; use http:// if it should not`,
  ERR_SSL_WRONG_VERSION_NUMBER: (where) => `${where} does not speak TLS; use http:// if it should not`,
  ETIMEDOUT: (where) => `${where} did not answer in time`,
  UND_ERR_BODY_TIMEOUT: (where) => `${where} stopped in the middle of its answer`,
  UND_ERR_CONNECT_TIMEOUT: (where) => `${where} did not answer in time`,
  UND_ERR_HEADERS_TIMEOUT: (where) => `${where} did not answer in time`,
  UND_ERR_SOCKET: (where) => `${where} closed the connection`,
  CERT_HAS_EXPIRED: (where) => `the TLS certificate of ${where} has expired`,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: (where) => `the TLS certificate of ${where} is for another host name`,
};

function untrusted(where: string): string {
  return `the TLS certificate of ${where} is not from a trusted authority; NODE_EXTRA_CA_CERTS=FILE adds one`;
}

/** Errors of starting a program. */
const SPAWN_ERRORS: Record<string, (program: string) => string> = {
  E2BIG: (program) => `the arguments or the environment for ${program} are too long`,
  EACCES: (program) => `this user may not run ${program}`,
  EAGAIN: (program) => `the limit of processes does not allow to start ${program}`,
  EMFILE: (program) => `this process has too many open files to start ${program}`,
  ENOENT: (program) => `${program} is not installed`,
  ENOMEM: (program) => `the machine has too little memory to start ${program}`,
};

/** The reason in words, without the input unless the error names it; undefined for errors of other kinds. */
export function describeSystemError(error: Error): string | undefined {
  const { cause } = error;
  // Errors of `fetch` only say that it failed. An attempt at several addresses has an error for each, and an empty message.
  if (error instanceof TypeError && error.message === 'fetch failed' && cause instanceof Error)
    return describeSystemError(cause) ?? describeRefusedPort(cause) ?? cause.message;
  if (error instanceof AggregateError && error.errors[0] instanceof Error)
    return describeSystemError(error.errors[0]);
  if (error.name === 'TimeoutError') return 'the other side did not answer in time';
  const { code, syscall } = error as SystemError;
  if (typeof code !== 'string') return undefined;
  if (code.startsWith('HPE_')) return 'the other side does not speak HTTP';
  const isNetwork = Object.hasOwn(NETWORK_ERRORS, code);
  if (isNetwork) return NETWORK_ERRORS[code]!(addressOf(error));
  if (syscall === undefined) return undefined;
  if (syscall === 'listen') return `this user may not listen at ${addressOf(error)}`;
  const { path } = error as SystemError;
  if (syscall.startsWith('spawn')) return SPAWN_ERRORS[code]?.(path ?? 'the program');
  return FILE_ERRORS[code]?.(path ?? FILE);
}

/** `fetch` refuses ports of other protocols, such as 22. */
function describeRefusedPort({ message }: Error): string | undefined {
  return message === 'bad port' ? 'HTTP does not use this port' : undefined;
}

function addressOf({ hostname, address, port }: SystemError): string {
  const host = hostname ?? address;
  if (host === undefined) return 'the other side';
  if (port === undefined || port < 0) return host;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Codes of errors of connections, after which the same request may succeed a moment later. */
export const NETWORK_CODES: readonly string[] = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
  'ERR_STREAM_PREMATURE_CLOSE',
];
