/** Templates of HTML markup that escape data. */

/** Markup. Invariant: every text from outside is escaped; only `html` and `trusted` create instances. */
export class Html {
  constructor(readonly markup: string) {}
}

type Part = string | number | Html | Html[] | null | false;

/** A template of markup. Strings are escaped, markup and lists of markup are inserted unchanged, null and false are omitted. */
export function html(template: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(template.reduce((text, next, i) => text + markupOf(parts[i - 1]) + next));
}

/** Marks constant text of this program as markup. It must never be used for data. */
export function trusted(markup: string): Html {
  return new Html(markup);
}

function markupOf(part: Part): string {
  if (part === null || part === false) return '';
  if (Array.isArray(part)) return part.map(({ markup }) => markup).join('');
  return part instanceof Html ? part.markup : escaped(String(part));
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]);
}
