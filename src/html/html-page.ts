import { type Html, html } from './html.js';

/** Content-Security-Policy of a self-contained page without scripts. */
export const PAGE_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

interface PageParts {
  title: string;
  /** Content-Security-Policy. */
  policy: string;
  style: Html;
  body: Html;
}

export const htmlSection = (title: string, ...content: Html[]): Html => html`<section><h2>${title}</h2>
${content}</section>
`;

/** An HTML page with embedded styles for light and dark mode. */
export function htmlPage({ title, policy, style, body }: PageParts): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
${body}
</body>
</html>
`.markup;
}
