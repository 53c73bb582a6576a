/** Markup that cannot be broken by the data in it. */

/** Markup. Invariant: every text from outside in it was escaped, so it is only made by `html` and `trusted`. */
export class Html {
  constructor(readonly markup: string) {}
}

type Part = string | number | Html | Html[] | null | false;

/** A template of markup: strings put into it are escaped, markup and lists of markup are kept, null and false say nothing. */
export function html(template: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(template.reduce((text, next, i) => text + markupOf(parts[i - 1]) + next));
}

/** Text of our own that is markup already. Never for data. */
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
