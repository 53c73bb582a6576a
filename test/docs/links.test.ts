/** Links between Markdown files lead to files and headings that exist, docs/index.md lists every page, and named source files exist. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize, relative, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const OUTSIDE_OF_DOCS = ['README.md', 'CONTRIBUTING.md', 'UPGRADING.md', 'data-samples/README.md'];
/** Files that a reader of the tutorial makes. */
const EXAMPLES = /^(src\/ingest\/formats|test\/ingest)\/kelvin/;

async function docsPages(): Promise<string[]> {
  const files = await readdir(join(repository, 'docs'), { recursive: true });
  return files.filter((file) => file.endsWith('.md')).map((file) => `docs/${file.replaceAll(sep, '/')}`);
}

const withoutBlocks = (text: string) => text.replaceAll(/^```.*?^```/gms, '');

/** Anchors of the headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutBlocks(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => title);
  return new Set(
    headings.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Targets of the relative links. */
function linksOf(text: string): string[] {
  const prose = withoutBlocks(text).replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

test('every link leads to a file, and to a heading of it', async () => {
  const broken: string[] = [];
  for (const page of [...OUTSIDE_OF_DOCS, ...(await docsPages())]) {
    for (const link of linksOf(await readFile(join(repository, page), 'utf8'))) {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : normalize(join(dirname(page), path));
      const isThere = existsSync(join(repository, target));
      if (!isThere) broken.push(`${page}: ${link}: no such file`);
      else if (anchor && !anchorsOf(await readFile(join(repository, target), 'utf8')).has(anchor))
        broken.push(`${page}: ${link}: no such heading`);
    }
  }
  assert.deepEqual(broken, []);
});

test('docs/index.md lists every page of docs', async () => {
  const index = join(repository, 'docs/index.md');
  const listed = linksOf(await readFile(index, 'utf8')).map((link) => normalize(join('docs', link)));
  const pages = (await docsPages()).filter((page) => page !== 'docs/index.md');
  assert.deepEqual(
    pages.filter((page) => !listed.includes(page)),
    [],
    `pages that ${relative(repository, index)} does not list`,
  );
});

test('source files that pages and comments name exist', async () => {
  const files: string[] = [];
  for (const folder of ['src', 'test', 'bench', 'tools', 'data-samples', 'docs'])
    for (const file of await readdir(join(repository, folder), { recursive: true }))
      files.push(`${folder}/${file.replaceAll(sep, '/')}`);
  const isComment = /^\s*(\/\/|\/?\*|;;|#)/;
  const missing: string[] = [];
  for (const page of [...OUTSIDE_OF_DOCS, ...files.filter((file) => /\.(md|ts|wat|py)$/.test(file))]) {
    const lines = (await readFile(join(repository, page), 'utf8')).split('\n');
    for (const line of lines.filter((line) => page.endsWith('.md') || isComment.test(line)))
      for (const [, name = ''] of line.matchAll(/(?<![\w/.-])((?:[\w-]+\/)*[\w-]+\.(?:ts|wat))\b/g))
        if (!EXAMPLES.test(name) && !files.some((file) => file === name || file.endsWith(`/${name}`)))
          missing.push(`${page}: ${name}`);
  }
  assert.deepEqual(missing, []);
});
