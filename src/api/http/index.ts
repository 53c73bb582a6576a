/**
 * HTTP helpers that routes share: base URL, paging, conditional requests, byte ranges, partial results, client disconnects.
 * Imports `api/errors.ts` and types of `query`.
 */
export { baseUrl, requestPath, requestUrl, withoutTrailingSlash } from './http-base-url.js';
export { sendRanged } from './http-byte-ranges.js';
export { onDisconnect } from './http-client-disconnect.js';
export { checkIfMatch, notModified, weakEtag } from './http-conditional-request.js';
export { CSS, JSON_TYPE, SCRIPT, servePage, servePageFile } from './http-page-file.js';
export { listPaging, nextPageUrl, type Paging, paging, parseLimit, toPage } from './http-paging.js';
export { partialMembers } from './http-partial-result.js';
