/**
 * HTTP helpers that routes share: base URL, links, paging, conditional requests, byte ranges, partial results, client disconnects.
 * Imports `api/errors.ts` and types of `query`.
 */
export { baseUrl, requestPath, requestUrl } from './base-url.js';
export { onDisconnect } from './client-disconnect.js';
export { checkIfMatch, notModified, weakEtag } from './conditional-request.js';
export { sendRanged } from './http-byte-ranges.js';
export { link } from './http-document-link.js';
export {
  listPaging,
  nextPageUrl,
  type Paging,
  pageLinks,
  paging,
  parseLimit,
  toPage,
} from './http-paging.js';
export { partialMembers } from './http-partial-result.js';
export { CSS, JSON_TYPE, SCRIPT, servePage, servePageFile } from './serve-page.js';
