/** Reads all Items of a static catalog by its links. */
import { badStacDocument } from '../errors.js';
import { withoutSecrets } from '../http/index.js';
import {
  itemOf,
  type JsonObject,
  linksOf,
  type RemoteItem,
  readDocument,
  type StacReader,
} from './stac-documents.js';

const MAX_DOCUMENTS = 20_000;
/** Documents that are requested ahead. */
const CONCURRENCY = 8;

/** A document without what is not needed of it, because eight are read ahead and a level can have thousands. */
type WalkedDocument = { item: RemoteItem } | { links: string[] } | undefined;

/** Returns the Items below a catalog or collection, each document once. Skips collections that `wants` refuses. */
export async function* walkCatalog(
  { client, signal, onFailure }: StacReader,
  root: { document: JsonObject; url: string },
  wants: (collection: string) => boolean,
): AsyncGenerator<RemoteItem> {
  const read = async (url: string): Promise<WalkedDocument> => {
    try {
      const document = await readDocument(client, url, { signal });
      if (!document) return undefined;
      if (document.type === 'Feature') return { item: itemOf(document, url) };
      const isWanted = document.type !== 'Collection' || wants(String(document.id));
      return { links: isWanted ? linksBelow(document, url) : [] };
    } catch (error) {
      signal?.throwIfAborted();
      onFailure(withoutSecrets(url), error);
      return undefined;
    }
  };
  const seen = new Set([root.url]);
  let open = linksBelow(root.document, root.url);
  while (open.length > 0) {
    const hrefs = [...new Set(open)].filter((href) => !seen.has(href));
    for (const href of hrefs) seen.add(href);
    if (seen.size > MAX_DOCUMENTS)
      throw badStacDocument(
        withoutSecrets(root.url),
        `it has more than ${MAX_DOCUMENTS} documents; name one of its collections`,
      );
    open = [];
    for (let at = 0; at < hrefs.length; at += CONCURRENCY) {
      const some = hrefs.slice(at, at + CONCURRENCY);
      for (const found of await Promise.all(some.map(read))) {
        if (found && 'item' in found) yield found.item;
        else if (found) open = open.concat(found.links);
      }
    }
  }
}

const linksBelow = (document: JsonObject, url: string): string[] =>
  linksOf(document, url).flatMap(({ rel, href }) => (rel === 'child' || rel === 'item' ? [href] : []));
