/// <reference lib="dom" />
/** Shows the OpenAPI document of this server by Swagger UI. Asks for a token if the document needs one. */

interface SwaggerUi {
  preauthorizeApiKey(scheme: string, token: string): void;
}

declare const SwaggerUIBundle: ((options: object) => SwaggerUi) & { presets: { apis: unknown } };

/** The map page uses the same one, so a token is given once in a tab. It is never part of an address. */
const TOKEN_STORAGE_KEY = 'tilewright-token';
/** The name of the security scheme in the document. */
const SCHEME = 'token';

const byId = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const message = byId('message');
const access = byId<HTMLFormElement>('access');

/** The address of the server as this browser reaches it, also below a path of a proxy. */
const base = new URL('.', location.href).href.replace(/\/$/, '');

async function open(): Promise<void> {
  const token = sessionStorage.getItem(TOKEN_STORAGE_KEY);
  const answer = await fetch('openapi.json', {
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
  });
  access.hidden = answer.status !== 401;
  if (answer.status === 401) {
    sessionStorage.removeItem(TOKEN_STORAGE_KEY);
    message.textContent =
      token === null
        ? 'This server asks for a token.'
        : 'This token does not open the server. Give another one.';
    return;
  }
  message.textContent = answer.ok ? '' : `The OpenAPI document cannot be read: HTTP ${answer.status}.`;
  if (answer.ok) show(await answer.json(), token);
}

function show(spec: object, token: string | null): void {
  const ui = SwaggerUIBundle({
    domNode: byId('reference'),
    // Requests go where the page came from, which the policy of the page allows.
    spec: { ...spec, servers: [{ url: base }] },
    presets: [SwaggerUIBundle.presets.apis],
    layout: 'BaseLayout',
    deepLinking: true,
    docExpansion: 'list',
    filter: true,
    // A validator would send the document to another host.
    validatorUrl: null,
    onComplete: () => {
      if (token !== null) ui.preauthorizeApiKey(SCHEME, token);
    },
  });
}

function openOrReport(): void {
  open().catch((error: Error) => {
    message.textContent = `The OpenAPI document cannot be read: ${error.message}`;
  });
}

access.addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_STORAGE_KEY, byId<HTMLInputElement>('token').value);
  openOrReport();
});

openOrReport();

export {};
