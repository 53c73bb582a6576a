/** Errors of hosts on the internet, and of the documents of STAC catalogs. */

import { defineError, messageOf } from '../errors.js';

export const badRemoteUrl = defineError(
  'TW_REMOTE_BAD_URL',
  400,
  'The address is not a URL of `https:`, or of `http:` for a host that `--allow-host` names.',
  (url: string, reason: string) => `${url} cannot be fetched: ${reason}`,
);

export const hostNotAllowed = defineError(
  'TW_REMOTE_HOST_NOT_ALLOWED',
  403,
  'A server fetches only from the hosts that its operator allows. Add the host with `--allow-host` to `tilewright serve`.',
  (host: string) =>
    `this server may not fetch from ${host}; its operator can allow it with --allow-host ${host}`,
);

export const addressNotAllowed = defineError(
  'TW_REMOTE_ADDRESS_NOT_ALLOWED',
  403,
  'The name of a host leads to a loopback, private or reserved address. Name the host with `--allow-host` if this is intended.',
  (host: string, address: string) =>
    `${host} has the address ${address}, which is not public; name it with --allow-host ${host} if this is intended`,
);

export const remoteUnreachable = defineError(
  'TW_REMOTE_UNREACHABLE',
  502,
  'A host does not answer, or its connections break off. The request was repeated several times.',
  (url: string, cause: unknown) => `${url} cannot be fetched: ${messageOf(cause)}`,
);

export const hostDown = defineError(
  'TW_REMOTE_HOST_DOWN',
  502,
  'A host has not answered several requests in a row, so the job sends it no request for a minute. Run the job again when the host answers; scenes that are stored are skipped.',
  (url: string, host: string, failures: number, seconds: number) =>
    `${url} is not requested, because ${failures} requests to ${host} in a row had no answer; the job sends none for ${seconds} s, so run it again when the host answers`,
);

export const remoteRefused = defineError(
  'TW_REMOTE_REFUSED',
  502,
  'A host answered a request with an error. For 401 and 403, the message says if a credential was sent: check it, or add an entry for the host to the file of `--remote-credentials`. For 404, check the address.',
  (url: string, status: number, detail = '', hasCredential?: boolean) =>
    `${url} answered ${status}${detail === '' ? '' : ` (${detail})`}${credentialsHint(url, status, hasCredential)}`,
);

function credentialsHint(url: string, status: number, hasCredential?: boolean): string {
  if (status !== 401 && status !== 403) return '';
  if (/^s3:/i.test(url))
    return `; the request was ${hasCredential ? 'signed' : 'not signed'}: check the keys, and set AWS_REQUEST_PAYER=requester or "requesterPays" if the reader of this bucket pays`;
  return hasCredential
    ? '; a credential was sent: check that it is valid and may read this address'
    : `; no credential was sent: if ${new URL(url).host} needs one, add an entry for it to the file of --remote-credentials`;
}

export const badCredentials = defineError(
  'TW_REMOTE_CREDENTIALS',
  400,
  'The file of credentials (`--remote-credentials`, or `.netrc`) cannot be used, or a service that signs addresses gives no token.',
  (source: string, reason: string) => `${source} gives no credentials: ${reason}`,
);

export const loginPage = defineError(
  'TW_REMOTE_LOGIN',
  502,
  'A host answered with a web page instead of a file, such as the form of a login. Check the address, or add an entry for the host to the file of `--remote-credentials`.',
  (url: string) =>
    `${url} answered with a web page instead of a file: the address may be wrong, or the host needs a login, which the file of --remote-credentials gives`,
);

export const remoteTooLarge = defineError(
  'TW_REMOTE_TOO_LARGE',
  502,
  'An answer of a host has more bytes than are read.',
  (url: string, limit: number) => `${url} answered with more than ${limit} bytes`,
);

export const badRemoteEncoding = defineError(
  'TW_REMOTE_BAD_ENCODING',
  502,
  'A document or file was sent compressed, and cannot be decompressed. It may be compressed with gzip, deflate or br.',
  (url: string, reason: string) => `${url} cannot be decompressed: ${reason}`,
);

export const badRemoteRange = defineError(
  'TW_REMOTE_BAD_RANGE',
  502,
  'A host answered a request for a part of a file with other bytes than were requested.',
  (url: string, reason: string) => `${url} cannot be read in parts: ${reason}`,
);

export const noRanges = defineError(
  'TW_REMOTE_NO_RANGES',
  502,
  'A host cannot send parts of files. Ingest downloads such files as a whole.',
  (url: string) => `${url}: the host cannot send parts of this file`,
);

export const remoteChanged = defineError(
  'TW_REMOTE_CHANGED',
  409,
  'A file was replaced while it was read. Ingest it again.',
  (url: string) => `${url} was replaced while it was read; ingest it again`,
);

export const badStacDocument = defineError(
  'TW_STAC_BAD_DOCUMENT',
  502,
  'An address does not lead to a STAC Item, ItemCollection, Catalog, Collection or API, or the document cannot be used.',
  (url: string, reason: string) => `${url} is not a STAC document that can be used: ${reason}`,
);

export const emptyCatalog = defineError(
  'TW_STAC_NO_ITEMS',
  422,
  'A static catalog, or a STAC API without Item Search, leads to no Item. Name another address: the landing page of an API, a catalog or collection whose links lead to Items, an ItemCollection or an Item.',
  (url: string, found: string) =>
    `${url} leads to no Item: it has no link to a search, and ${found}; name the landing page of an API, a catalog or collection whose links lead to Items, or an Item`,
);

export const filterNotSupported = defineError(
  'TW_STAC_NO_FILTER',
  422,
  'Only the search of a STAC API that conforms to its Filter extension evaluates `--filter`. Use `--max-cloud`, `--datetime` and `--bbox`.',
  (url: string) =>
    `${url} cannot be searched with a filter: it is not a STAC API with the Filter extension; use --max-cloud, --datetime and --bbox`,
);

export const noStacCollection = defineError(
  'TW_STAC_NO_COLLECTION',
  422,
  'A STAC API has none of the Items that were asked for, because it has no collection of that name. Its landing page links to the list of its collections.',
  (url: string, ids: readonly string[], list: string) =>
    `${url} has no collection ${ids.join(', ')}; ${list} lists its collections`,
);

export const tooManyItems = defineError(
  'TW_STAC_TOO_MANY_ITEMS',
  422,
  'More Items match than one run ingests without being asked for. Narrow the search, take its first Items with `--limit` (`stac.limit` over HTTP), or all with `--yes` (`stac.all`), which are 100,000 at most.',
  (matched: number | undefined, most: number, isAll: boolean) => {
    const count = `${matched ?? `more than ${most}`} Items match`;
    return isAll
      ? `${count}, and one run ingests at most ${most}; narrow the search by dates or --bbox`
      : `${count}, and at most ${most} are ingested without --limit; narrow the search, add --limit N for the first ones, or --yes for all`;
  },
);
