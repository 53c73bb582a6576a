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
  'The body of the request is longer than the server takes: 1 MB for JSON, `--max-upload` for files. Send less JSON at once, such as fewer spectra of a library or fewer labels.',
  (limit: number, what: 'JSON' | 'file') => {
    const text = `the ${what === 'JSON' ? 'request' : 'file'} is larger than the ${Math.floor(limit / 1e6)} MB that the server takes`;
    return what === 'JSON'
      ? `${text}: send less at once, such as fewer spectra of a library, fewer labels or a simpler outline`
      : `${text}: send a smaller one, or start the server with a larger --max-upload`;
  },
);

export const jsonTooDeep = defineError(
  'TW_API_TOO_DEEP',
  400,
  'The JSON of the request has more levels of objects and lists inside each other than the server takes.',
  (most: number) =>
    `the JSON of the request has more than ${most} levels of objects and lists inside each other: send it flatter`,
);

export const bodyTimedOut = defineError(
  'TW_API_TOO_SLOW',
  408,
  'The request came so slowly that the server stopped waiting for it. Send it again.',
  () => 'the request came too slowly, so the server stopped waiting for it; send it again',
);

export const uploadAborted = defineError(
  'TW_API_CUT_OFF',
  400,
  'The client closed the connection before the whole file was there. Nothing of it is kept.',
  (filename: string) => `the upload of ${filename} was cut off; nothing of it is kept, send it again`,
);

export const stopping = defineError(
  'TW_API_STOPPING',
  503,
  'The server is being stopped and takes no further request.',
  () => 'the server is being stopped and takes no further request',
);

export const unauthorized = defineError(
  'TW_API_UNAUTHORIZED',
  401,
  'The server was started with a token and the request does not carry it.',
  () =>
    'this needs the token of the server: give it by --token, or in the header "Authorization: Bearer TOKEN"',
);

export const insufficientScope = defineError(
  'TW_API_INSUFFICIENT_SCOPE',
  403,
  'The token opens reads only (`--read-token`), and the request writes or starts work. Use the token that `--token` gave.',
  () => 'this token opens reads only; writes and jobs need the one that --token gave',
);

export const rateLimited = defineError(
  'TW_API_RATE_LIMIT',
  429,
  'The client makes more requests than the server allows (`--rate-limit`). Wait as long as the header Retry-After says.',
  (perSecond: number) =>
    `more than ${perSecond} requests a second come from this address; wait as long as Retry-After says`,
);

export const foreignHost = defineError(
  'TW_API_FOREIGN_HOST',
  403,
  'A server without a token answers only requests that name this machine; others may come from a web page through DNS.',
  (host: string) =>
    `the host ${host} is not this machine: start the server with --token to be reached by other names`,
);

export const foreignOrigin = defineError(
  'TW_API_FOREIGN_ORIGIN',
  403,
  'A web page of another origin asked for a write; only reads are open to other origins.',
  (origin: string) => `writes are not open to pages of ${origin}`,
);

export const resourceNotFound = defineError(
  'TW_API_NOT_FOUND',
  404,
  'No route, collection, item, model or process has this name.',
  (what: string) => `there is no ${what}`,
);

/** `found`: the item of this id, if it is in another collection. */
export const noItem = (item: string, collection: string, found: unknown) =>
  resourceNotFound(found ? `item ${item} in collection ${collection}` : `item ${item}`);

export const methodNotAllowed = defineError(
  'TW_API_METHOD',
  405,
  'The path is known, but not with this method. The header Allow lists those that it takes.',
  (method: string, path: string, allow: string) => `${path} does not take ${method}; it takes ${allow}`,
);

export const badPagingToken = defineError(
  'TW_API_TOKEN',
  400,
  'The paging token is none that the server gave for this list. Begin again without one.',
  (token: string) =>
    `${JSON.stringify(token.slice(0, 40))} is no token of this list; begin again without one`,
);

export const noHost = defineError(
  'TW_API_NO_HOST',
  400,
  'A request of HTTP/1.1 must have one Host header.',
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
  'The execute request has a `subscriber`. The server sends no callbacks: it makes no requests to addresses that a client names.',
  () =>
    'the server sends no callbacks: leave out "subscriber", and follow /jobs/ID/events or ask for /jobs/ID',
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
  'As many streams of events are open as the server takes. Ask for the status of the job now and then, or try again.',
  (limit: number) => `${limit} event streams are open already; try again, or ask for the status now and then`,
);

export const bindWithoutToken = defineError(
  'TW_API_OPEN_BIND',
  400,
  'A server that other machines can reach must have a token.',
  (host: string) =>
    `listening on ${host} would let other machines in: add --token TOKEN, or use --host 127.0.0.1`,
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
  'The URL of `--public-url` cannot be the base of links. It is a URL of http or https, with a path if the proxy adds one, without a query.',
  (url: string, reason: string) =>
    `--public-url ${url} cannot be used: ${reason}; give one such as https://example.org/tiles`,
);

export const badProxy = defineError(
  'TW_API_TRUST_PROXY',
  400,
  'An element of `--trust-proxy` names no addresses. It is an IP address, a range in CIDR notation, or `loopback`.',
  (given: string) =>
    `--trust-proxy ${JSON.stringify(given)} is not an address: give IP addresses, ranges such as 10.0.0.0/8, or loopback, separated by commas`,
);

export const outsideFolder = defineError(
  'TW_API_OUTSIDE_FOLDER',
  403,
  'The href lies outside the folders that the server may read, or the server has none (`--allow-folder`). Or send the file: `tilewright ingest --upload`, `POST /ingest` with the file as body.',
  (href: string) =>
    `${href} is not inside a folder that the server may read: start it with --allow-folder DIR, or add --upload to send the file`,
);

export const rangeNotSatisfiable = defineError(
  'TW_API_RANGE',
  416,
  'The asked byte range lies beyond the file.',
  (range: string, size: number) => `the range ${range} does not fit a file of ${size} bytes`,
);

export const otherVersion = defineError(
  'TW_API_PRECONDITION',
  412,
  'The header `If-Match` names another version of the file. Ask for the file again without the header.',
  (etag: string) =>
    `If-Match does not name ${etag}, the version that is stored: ask for the file again without If-Match`,
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
  'The server met an error that it does not know. Its log has the details.',
  () => 'the server met an error that it does not know: its log has the details',
);

export const cannotListen = defineError(
  'TW_API_CANNOT_LISTEN',
  500,
  'The server cannot listen on its address, most often because another program has the port.',
  (host: string, port: number, reason: string) =>
    `cannot listen on ${host} port ${port} (${reason}); take another --port, 0 for any free one`,
);

export const tileDamaged = defineError(
  'TW_API_TILE_FILE',
  500,
  'A stored tile file is missing or not as long as it was written. `tilewright verify` lists everything that is damaged; ingest the scene again.',
  (name: string) => `${name} is missing or damaged; run "tilewright verify", then ingest again what it names`,
);

export const commitNotApplied = defineError(
  'TW_API_NOT_APPLIED',
  503,
  'The request names a commit by the header `Tilewright-Seq` that the node has not applied within 5 seconds. Ask again, or another node. Where the number is larger than any that a node of this cluster has told, no node ever will.',
  (wanted: number, applied: number) =>
    `commit ${wanted} is not applied here yet (${applied} is); ask again, or another node`,
);

export const notReady = defineError(
  'TW_API_NOT_READY',
  503,
  'The node still starts, or loads the slots that it is to answer for. Ask again, or another node.',
  () => 'this node still starts, or loads the slots that it is to answer for; ask again, or another node',
);
