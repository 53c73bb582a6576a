/** The page of the API's reference as HTML; `browser/docs-page-script.ts` fills it. */
export const document = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tilewright API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/docs-page-script.js" type="module"></script>
<header>
  <h1>tilewright API</h1>
  <p>A STAC API with tile files, jobs and models. <a href="./">Landing page</a>, <a href="openapi.json">OpenAPI document</a>,
  <a href="queryables">properties for filters</a>.</p>
  <p id="message" role="status"></p>
  <form id="access" hidden>
    <label>Token <input type="password" id="token" autocomplete="off" required></label>
    <button>Open</button>
    <p>One of the tokens that the server was started with (--read-token or --token). It is kept until this tab closes.</p>
  </form>
  <noscript><p>This page needs JavaScript. The OpenAPI document describes every route.</p></noscript>
</header>
<main id="reference"></main>
</html>
`;
