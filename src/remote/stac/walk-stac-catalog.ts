/** Reads all Items of a static catalog by its links. */
import { badStacDocument } from '../errors.js';
import { withoutSecrets } from '../http/index.js';
import {
  type JsonObject,
  linksOf,
  type RemoteItem,
  readDocument,
  readItems,
  type StacReader,
} from './stac-documents.js';

const MAX_DOCUMENTS = 20_000;
/** Documents that are requested ahead. */
const CONCURRENCY = 8;

/** Returns the Items below a catalog or collection, each document once. Skips collections that `wants` refuses. */
export async function* walkCatalog(
  { client, signal, onFailure }: StacReader,
  root: { document: JsonObject; url: string },
  wants: (collection: string) => boolean,
): AsyncGenerator<RemoteItem> {
  const read = (href: string) =>
    readDocument(client, href, { signal }).catch((error) => {
      signal?.throwIfAborted();
      onFailure(withoutSecrets(href), error);
    });
  const seen = new Set([root.url]);
  let open = [root];
  while (open.length > 0) {
    const links = open.flatMap(({ document, url }) => linksOf(document, url));
    const found = links.filter(({ rel, href }) => (rel === 'child' || rel === 'item') && !seen.has(href));
    const hrefs = [...new Set(found.map(({ href }) => href))];
    for (const href of hrefs) seen.add(href);
    if (seen.size > MAX_DOCUMENTS)
      throw badStacDocument(
        withoutSecrets(root.url),
        `it has more than ${MAX_DOCUMENTS} documents; name one of its collections`,
      );
    open = [];
    for (let at = 0; at < hrefs.length; at += CONCURRENCY) {
      const some = hrefs.slice(at, at + CONCURRENCY);
      const documents = await Promise.all(some.map(read));
      for (const [i, document] of documents.entries()) {
        const url = some[i]!;
        if (!document) continue;
        if (document.type === 'Feature') yield* readItems([document], url, onFailure);
        else if (document.type !== 'Collection' || wants(String(document.id))) open.push({ document, url });
      }
    }
  }
}
