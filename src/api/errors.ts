/** Errors of the API. */
import { defineError } from '../errors.js';

export const badRequest = defineError(
  'TW_API_BAD_REQUEST',
  400,
  'A parameter or body does not fit the route. The message names it; /openapi.json has the shapes. The status is 415 if the route does not accept the Content-Type of the body (most accept `application/json` only), 414 if a part of the path is too long, and 431 if the headers are.',
  (reason: string) => `the request cannot be used: ${reason}`,
);

export const bodyTooLarge = defineError(
  'TW_API_TOO_LARGE',
  413,
  'The body of the request is longer than the server accepts: 1 MB for JSON, `--max-upload` for files. Send less JSON in one request, such as fewer spectra of a library or fewer labels.',
  (limit: number, what: 'JSON' | 'file') => {
    const text = `the ${what === 'JSON' ? 'request' : 'file'} is larger than the ${Math.floor(limit / 1e6)} MB that the server accepts`;
    return what === 'JSON'
      ? `${text}: send less in one request, such as fewer spectra of a library, fewer labels or a simpler outline`
      : `${text}: send a smaller one, or start the server with a larger --max-upload`;
  },
);

export const jsonTooDeep = defineError(
  'TW_API_TOO_DEEP',
  400,
  'The objects and lists in the JSON of the request are nested more deeply than the server accepts.',
  (most: number) =>
    `the objects and lists in the JSON of the request are nested more than ${most} levels deep: flatten it`,
);

export const bodyTimedOut = defineError(
  'TW_API_TOO_SLOW',
  408,
  'The request arrived so slowly that the server stopped waiting for it. Send it again.',
  () => 'the request arrived too slowly, so the server stopped waiting for it; send it again',
);

export const uploadAborted = defineError(
  'TW_API_CUT_OFF',
  400,
  'The client closed the connection before the file was complete. No part of the file is kept.',
  (filename: string) => `the upload of ${filename} was interrupted and no part of it is kept; send it again`,
);

export const stopping = defineError(
  'TW_API_STOPPING',
  503,
  'The server is stopping and accepts no more requests.',
  () => 'the server is stopping and accepts no more requests',
);

export const unauthorized = defineError(
  'TW_API_UNAUTHORIZED',
  401,
  'The server was started with a token and the request does not carry it.',
  () =>
    'this needs the token of the server: pass it with --token, or in the header "Authorization: Bearer TOKEN"',
);

export const insufficientScope = defineError(
  'TW_API_INSUFFICIENT_SCOPE',
  403,
  'The token allows reads only (`--read-token`), and the request writes or starts a job. Use the token of `--token`.',
  () => 'this token allows reads only; writes and jobs need the token of --token',
);

export const rateLimited = defineError(
  'TW_API_RATE_LIMIT',
  429,
  'The client makes more requests than the server allows (`--rate-limit`). Wait as long as the header Retry-After says.',
  (perSecond: number) =>
    `this address sends more than ${perSecond} requests a second; wait as long as Retry-After says`,
);

export const notBetweenNodes = defineError(
  'TW_API_NODES_ONLY',
  403,
  'The address of `--cluster-listen` answers only other nodes of the cluster. Send requests to the address of `--host` and `--port`.',
  () => 'this address answers only other nodes of the cluster; send requests to the one of --host and --port',
);

export const serverBusy = defineError(
  'TW_API_BUSY',
  503,
  'Other long requests or answers take the memory that the server has for them. Repeat the request after the time in the header Retry-After, perhaps with a smaller `limit`.',
  (what: 'requests' | 'answers') =>
    `other long ${what} take the memory of the server: repeat the request later${what === 'answers' ? ', or with a smaller limit' : ''}`,
);

export const tooManyUploads = defineError(
  'TW_API_TOO_MANY_UPLOADS',
  429,
  'The server receives as many files as it allows from this address, or from all. Repeat the upload when others have ended.',
  () => 'the server receives too many files at the same time: repeat the upload when others have ended',
);

export const foreignHost = defineError(
  'TW_API_FOREIGN_HOST',
  403,
  'A server without a token answers only requests whose Host header names this machine; others could come from a web page by DNS rebinding.',
  (host: string) =>
    `the host ${host} is not this machine: start the server with --token to be reached by other names`,
);

export const foreignOrigin = defineError(
  'TW_API_FOREIGN_ORIGIN',
  403,
  'A web page of another origin sent a write request; other origins may only read.',
  (origin: string) => `web pages of ${origin} may not write`,
);

export const resourceNotFound = defineError(
  'TW_API_NOT_FOUND',
  404,
  'No route, collection, item, model or process has this name.',
  (what: string) => `there is no ${what}`,
);

/** The reason why work for a client ends early; the client does not get it. */
export const clientGone = () => badRequest('the client has closed the connection');

/** `found` is the item with this id, if it is in another collection. */
export const noItem = (item: string, collection: string, found: unknown) =>
  resourceNotFound(found ? `item ${item} in collection ${collection}` : `item ${item}`);

export const methodNotAllowed = defineError(
  'TW_API_METHOD',
  405,
  'The path does not support this method. The header Allow lists the supported methods.',
  (method: string, path: string, allow: string) => `${path} does not support ${method}; it supports ${allow}`,
);

export const badPagingToken = defineError(
  'TW_API_TOKEN',
  400,
  'The paging token was not issued for this list. Start again without a token.',
  (token: string) =>
    `${JSON.stringify(token.slice(0, 40))} is not a token of this list; start again without one`,
);

export const noHost = defineError(
  'TW_API_NO_HOST',
  400,
  'An HTTP/1.1 request must have one Host header.',
  () => 'the request has no Host header',
);

export const processNotFound = defineError(
  'TW_API_NO_PROCESS',
  404,
  'No process has this id. `GET /processes` lists those that exist.',
  (id: string) => `there is no process ${id}; GET /processes lists those that exist`,
);

export const noCallbacks = defineError(
  'TW_API_NO_CALLBACKS',
  400,
  'The execute request has a `subscriber`. The server sends no callbacks, because it never sends requests to addresses from clients.',
  () => 'the server sends no callbacks: leave out "subscriber", and follow /jobs/ID/events or poll /jobs/ID',
);

export const outputNotFound = defineError(
  'TW_API_NO_OUTPUT',
  400,
  'The process has no output of this name. `GET /processes/ID` lists its outputs.',
  (process: string, name: string, known: string[]) =>
    `the process ${process} has no output ${JSON.stringify(name.slice(0, 40))}; ${known.length > 0 ? `it has ${known.join(', ')}` : 'it declares none, so leave out "outputs"'}`,
);

export const tooManyListeners = defineError(
  'TW_API_TOO_MANY_LISTENERS',
  429,
  'The server has as many open event streams as it allows. Poll the status of the job, or try again.',
  () => 'too many event streams are open already; try again, or poll the status of the job',
);

export const bindWithoutToken = defineError(
  'TW_API_OPEN_BIND',
  400,
  'A server that other machines can reach must have a token.',
  (host: string) =>
    `other machines could reach a server on ${host} without a token: add --token TOKEN, or use --host 127.0.0.1`,
);

export const publicUrlWithoutToken = defineError(
  'TW_API_OPEN_PUBLIC_URL',
  400,
  'A server that other machines can reach through a proxy (`--public-url`) must have a token.',
  (url: string) => `clients at ${url} could write without a token: add --token TOKEN`,
);

export const badPublicUrl = defineError(
  'TW_API_PUBLIC_URL',
  400,
  'The URL of `--public-url` cannot be the base of links. It must be an http or https URL without a query, with a path if the proxy adds one.',
  (url: string, reason: string) =>
    `--public-url ${url} cannot be used: ${reason}; use a URL such as https://example.org/tiles`,
);

export const badProxy = defineError(
  'TW_API_TRUST_PROXY',
  400,
  'An element of `--trust-proxy` is not an address. It must be an IP address, a range in CIDR notation, or `loopback`.',
  (given: string) =>
    `--trust-proxy ${JSON.stringify(given)} is not an address: give IP addresses, ranges such as 10.0.0.0/8, or loopback, separated by commas`,
);

export const outsideFolder = defineError(
  'TW_API_OUTSIDE_FOLDER',
  403,
  'The href lies outside the folders that the server may read (`--allow-folder`), or the server has no such folder. You can also send the file: `tilewright ingest --upload`, or `POST /ingest` with the file as body.',
  (href: string) =>
    `${href} is not inside a folder that the server may read: start it with --allow-folder DIR, or add --upload to send the file`,
);

export const rangeNotSatisfiable = defineError(
  'TW_API_RANGE',
  416,
  'The requested byte range lies beyond the end of the file.',
  (range: string, size: number) => `the range ${range} does not fit a file of ${size} bytes`,
);

export const otherVersion = defineError(
  'TW_API_PRECONDITION',
  412,
  'The header `If-Match` names another version of the file. Request the file again without the header.',
  (etag: string) =>
    `If-Match does not name ${etag}, the version that is stored: request the file again without If-Match`,
);

export const encodedBody = defineError(
  'TW_API_CONTENT_ENCODING',
  415,
  'The body of the request is compressed (`Content-Encoding`). The server accepts bodies without compression only.',
  (encoding: string) =>
    `the body has the Content-Encoding ${JSON.stringify(encoding.slice(0, 40))}: send the body without compression`,
);

export const internal = defineError(
  'TW_API_INTERNAL',
  500,
  'The server had an unexpected error. Its log has the details.',
  () => 'the server had an unexpected error: its log has the details',
);

export const cannotListen = defineError(
  'TW_API_CANNOT_LISTEN',
  500,
  'The server cannot listen on its address, usually because another program uses the port.',
  (host: string, port: number, reason: string) =>
    `cannot listen on ${host} port ${port} (${reason}); use another --port, or 0 for any free one`,
);

export const tileDamaged = defineError(
  'TW_API_TILE_FILE',
  500,
  'A stored tile file is missing, or its length has changed. `tilewright verify` lists all damaged files; ingest the scene again.',
  (name: string) =>
    `${name} is missing or damaged; run "tilewright verify", then ingest the scenes that it names again`,
);

export const commitNotApplied = defineError(
  'TW_API_NOT_APPLIED',
  503,
  'The header `Tilewright-Seq` names a commit that the node did not apply within 5 seconds. Try again, or use another node. If no node of this cluster ever returned this number, the request cannot succeed.',
  (wanted: number, applied: number) =>
    `commit ${wanted} is not applied here yet (${applied} is); try again, or use another node`,
);

export const notReady = defineError(
  'TW_API_NOT_READY',
  503,
  'The node is still starting, or loading the slots that it owns. Try again, or use another node.',
  () => 'this node is still starting, or loading the slots that it owns; try again, or use another node',
);
