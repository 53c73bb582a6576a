/**
 * Reports sentences of Markdown files and of comments that break the project's rules of language, as `file:line: rule: sentence`.
 * Usage, in the repository's folder: node tools/check-language.mjs [FILE OR FOLDER ...]. Exit code 1 if it reports anything.
 * It runs on the sources, without a build.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';

const DEFAULT_PATHS = [
  ...['README.md', 'CONTRIBUTING.md', 'UPGRADING.md', 'docs'],
  ...['src', 'test', 'bench', 'tools', 'data-samples'],
];
const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', '.git', '.stryker-tmp', 'reports']);
const MAX_COMMENT_LINE = 140;

/** Sentences that a rule reports but that are right. `text` is a part of the sentence. */
const EXCEPTIONS = [
  // This file contains the words that it looks for.
  { file: 'tools/check-language.mjs', text: '' },
  // These pages are generated from texts of the program.
  { file: 'docs/reference/cli.md', text: '' },
  { file: 'docs/reference/configuration.md', text: '' },
  { file: 'docs/reference/errors.md', text: '' },
  { file: 'docs/reference/http-api.md', text: '' },
];

/** After "is no", these words make a comparison ("is no larger than") and not a negated noun ("is no folder"). */
const COMPARATIVES =
  'longer|more|less|fewer|other|different|larger|smaller|bigger|slower|faster|better|worse|shorter|higher|lower|greater|later|earlier|older|newer|wider|narrower|deeper|finer|coarser|further|closer|nearer|easier|cheaper|stricter';

const OPENERS = /^["'(“]*(Of|What|Who|Whose|Whoever|Whatever|Whether|Where|Wherever|Likewise)\b(?! course\b)/;

/** Each pattern applies to a sentence whose code spans are blank. */
const WORDS = [
  ['use "again", or "is recreated"', /\banew\b/i],
  ['use "in the meantime", "by then" or nothing', /\bmeanwhile\b/i],
  ['name the actor: "tilewright detects", "the report names"', /\b(?:is|are|was|were|be|been|being) told\b/i],
  ['use "fixed" or "repaired"', /\bmend(?:ed|s|ing)?\b/i],
  [
    'use "is not a ..."',
    new RegExp(`(?<!\\bthere )\\b(?:is|are|was|were) no (?!(?:${COMPARATIVES}|data)\\b)[a-z]`, 'i'),
  ],
  ['use "does not exist", "has no ..." or "is missing"', /(?<!\bif )\bthere (?:is|are|was|were) none\b/i],
  ['use "assumed to be" or "treated as"', /\btaken for\b/i],
];

/** @typedef {{ text: string, lines: number[], isComment: boolean, isHeading?: boolean }} Block Text, with the line of each character. */

/** Collects lines into a block. */
function blockOf(parts, isComment, isHeading = false) {
  let text = '';
  const lines = [];
  for (const [part, line] of parts) {
    const piece = text === '' ? part : ` ${part}`;
    text += piece;
    for (let i = 0; i < piece.length; i++) lines.push(line);
  }
  return { text, lines, isComment, isHeading };
}

/** Splits lines of prose into paragraphs and list items. */
function paragraphs(numbered, isComment) {
  const blocks = [];
  let parts = [];
  let isCode = false;
  const flush = () => {
    if (parts.length > 0) blocks.push(blockOf(parts, isComment));
    parts = [];
  };
  for (const [raw, line] of numbered) {
    const text = raw.trim();
    if (/^(```|~~~)/.test(text)) {
      flush();
      isCode = !isCode;
      continue;
    }
    if (isCode) continue;
    if (text === '') flush();
    else if (!isComment && /^#{1,6} /.test(text)) {
      flush();
      blocks.push(blockOf([[text.replace(/^#+ /, ''), line]], false, true));
    } else if (!isComment && text.startsWith('|')) {
      flush();
      const isHeader = /^\s*\|[\s:|-]+\|\s*$/.test(numbered[line]?.[0] ?? '');
      const cells = text
        .replaceAll('\\|', '  ')
        .replace(/^\||\|$/g, '')
        .split('|');
      for (const cell of cells) {
        if (/[^\s:-]/.test(cell)) blocks.push(blockOf([[cell.trim(), line]], false, isHeader));
      }
    } else {
      const item = /^(?:[-*]|\d+\.|@\w+(?: \{[^}]*\})?(?: [\w.]+)?) +(.*)$/.exec(text);
      if (item) flush();
      const plain = (item ? item[1] : text).replace(/^> ?/, '');
      if (plain !== '') parts.push([plain, line]);
    }
  }
  flush();
  return blocks;
}

function markdownBlocks(source) {
  const text = source.replaceAll(/<!--[\s\S]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, ' '));
  return paragraphs(
    text.split('\n').map((line, index) => [line, index + 1]),
    false,
  );
}

/** Start and end of every comment of JavaScript, TypeScript or C++. */
function slashComments(source) {
  const found = [];
  const nesting = [];
  let last = '';
  let i = 0;
  const skipQuoted = (quote) => {
    i++;
    while (i < source.length && source[i] !== quote && source[i] !== '\n') i += source[i] === '\\' ? 2 : 1;
    i++;
  };
  const skipTemplate = () => {
    while (i < source.length) {
      if (source[i] === '\\') i += 2;
      else if (source[i] === '`') {
        i++;
        return;
      } else if (source.startsWith('${', i)) {
        i += 2;
        nesting.push('template');
        return;
      } else i++;
    }
  };
  const skipRegex = () => {
    let isClass = false;
    i++;
    while (i < source.length && source[i] !== '\n' && (isClass || source[i] !== '/')) {
      if (source[i] === '[') isClass = true;
      if (source[i] === ']') isClass = false;
      i += source[i] === '\\' ? 2 : 1;
    }
    i++;
  };
  while (i < source.length) {
    const char = source[i];
    if (source.startsWith('//', i)) {
      const end = source.indexOf('\n', i);
      found.push([i, end < 0 ? source.length : end]);
      i = end < 0 ? source.length : end;
      continue;
    }
    if (source.startsWith('/*', i)) {
      const end = source.indexOf('*/', i + 2);
      found.push([i, end < 0 ? source.length : end + 2]);
      i = end < 0 ? source.length : end + 2;
      continue;
    }
    if (char === "'" || char === '"') {
      skipQuoted(char);
      last = char;
    } else if (char === '`') {
      i++;
      skipTemplate();
      last = '`';
    } else if (char === '/' && isRegexStart(last, source, i)) {
      skipRegex();
      last = '/';
    } else if (char === '{') {
      nesting.push('block');
      last = char;
      i++;
    } else if (char === '}') {
      i++;
      if (nesting.pop() === 'template') {
        skipTemplate();
        last = '`';
      } else last = char;
    } else {
      if (!/\s/.test(char)) last = char;
      i++;
    }
  }
  return found;
}

function isRegexStart(last, source, at) {
  if (last === '' || '(,=:[!&|?{};+-*%~^<>'.includes(last)) return true;
  return /\b(?:return|typeof|case|in|of|do|else|void|yield|await)\s*$/.test(
    source.slice(Math.max(0, at - 12), at),
  );
}

/** Start and end of every comment that begins with a marker, at the start of a line or after a space. */
function markedComments(source, marker) {
  const found = [];
  let at = 0;
  for (const line of source.split('\n')) {
    const match = new RegExp(`(?:^|\\s)(${marker}+)(?!!)(?=\\s)`).exec(line);
    // A marker after an opened quote is part of a string.
    const isQuoted = match && (line.slice(0, match.index).match(/["']/g)?.length ?? 0) % 2 === 1;
    if (match && !isQuoted)
      found.push([at + match.index + match[0].length - match[1].length, at + line.length]);
    at += line.length + 1;
  }
  return found;
}

const SLASH = new Set(['.ts', '.mts', '.js', '.mjs', '.cc']);
const HASH = new Set(['.sh', '.py', '.yaml', '.yml']);

function commentBlocks(source, extension) {
  const ranges = SLASH.has(extension)
    ? slashComments(source)
    : markedComments(source, extension === '.wat' ? ';' : '#');
  const lineOf = lineFinder(source);
  const groups = [];
  let previous;
  for (const [start, end] of ranges) {
    const raw = source.slice(start, end);
    const line = lineOf(start);
    const isAlone = source.slice(source.lastIndexOf('\n', start - 1) + 1, start).trim() === '';
    const isLine = !raw.startsWith('/*');
    const numbered = raw
      .replace(/^\/\*+|\*+\/$/g, '')
      .split('\n')
      .map((text, index) => [
        text.replace(isLine ? /^\s*(?:\/\/+|#+|;+)/ : /^\s*\*(?!\*)/, ''),
        line + index,
      ]);
    if (/^\s*(?:biome-ignore|@ts-)/.test(numbered[0][0]) || raw.startsWith('#!')) continue;
    if (previous && isLine && isAlone && previous.isLine && previous.isAlone && previous.line === line - 1) {
      groups.at(-1).push(...numbered);
    } else groups.push(numbered);
    previous = { line, isLine, isAlone };
  }
  return groups.flatMap((numbered) => paragraphs(numbered, true));
}

function lineFinder(source) {
  const starts = [0];
  for (let i = source.indexOf('\n'); i >= 0; i = source.indexOf('\n', i + 1)) starts.push(i + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

/** Sentences of a block, each with the offset of its start. */
function sentences({ text }) {
  const found = [];
  let start = 0;
  // Code spans may end with a full stop and contain any word.
  const plain = text.replaceAll(/`[^`]*`/g, (span) => '_'.repeat(span.length));
  for (const match of plain.matchAll(/[.!?]["')”]*\s+(?=["'(“]*[A-Z_[*])/g)) {
    const end = match.index + match[0].length;
    found.push({ start, text: text.slice(start, end).trim(), plain: plain.slice(start, end).trim() });
    start = end;
  }
  found.push({ start, text: text.slice(start).trim(), plain: plain.slice(start).trim() });
  return found.filter((sentence) => sentence.text !== '');
}

function* faultsOf(block) {
  for (const [index, sentence] of sentences(block).entries()) {
    const plain = sentence.plain.replace(/^[*_[]+(?=[A-Za-z])/, '');
    // A comment may begin in lower case.
    const opening = block.isComment && index === 0 ? plain.replace(/^[a-z]/, (c) => c.toUpperCase()) : plain;
    const opener = OPENERS.exec(opening);
    const line = block.lines[sentence.start] ?? block.lines[0];
    if (opener && !block.isHeading && !/\?["')”]*$/.test(plain))
      yield { line, rule: `does not begin with its subject ("${opener[1]}")`, text: sentence.text };
    for (const [rule, pattern] of WORDS) {
      const match = pattern.exec(sentence.plain);
      if (match)
        yield {
          line: block.lines[sentence.start + match.index] ?? line,
          rule: `"${match[0].trim()}": ${rule}`,
          text: sentence.text,
        };
    }
  }
}

/** Lines with a comment that are too long. An address that cannot be broken does not count. */
function* longLines(source, extension) {
  const ranges = SLASH.has(extension) ? slashComments(source) : markedComments(source, '#');
  const lineOf = lineFinder(source);
  const lines = source.split('\n');
  const commented = new Set();
  for (const [start, end] of ranges) for (let n = lineOf(start); n <= lineOf(end - 1); n++) commented.add(n);
  for (const line of commented) {
    const text = lines[line - 1];
    const { length } = text.replaceAll(/https?:\/\/\S+/g, '');
    if (length > MAX_COMMENT_LINE)
      yield { line, rule: `${length} characters, more than ${MAX_COMMENT_LINE}`, text: text.trim() };
  }
}

function faultsOfFile(path) {
  const extension = extname(path);
  const source = readFileSync(path, 'utf8');
  const isMarkdown = extension === '.md';
  const blocks = isMarkdown ? markdownBlocks(source) : commentBlocks(source, extension);
  const faults = blocks.flatMap((block) => [...faultsOf(block)]);
  if (!isMarkdown) faults.push(...longLines(source, extension));
  const name = relative(process.cwd(), path).replaceAll(sep, '/');
  return faults
    .filter(({ text }) => !EXCEPTIONS.some((e) => e.file === name && text.includes(e.text)))
    .sort((a, b) => a.line - b.line);
}

function filesBelow(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => !SKIPPED_FOLDERS.has(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() || entry.isFile() ? filesBelow(join(path, entry.name)) : []));
}

const paths = process.argv.slice(2);
const roots = paths.length > 0 ? paths : DEFAULT_PATHS;
let count = 0;
for (const path of roots.flatMap(filesBelow)) {
  const extension = extname(path);
  if (extension !== '.md' && extension !== '.wat' && !SLASH.has(extension) && !HASH.has(extension)) continue;
  for (const { line, rule, text } of faultsOfFile(path)) {
    count++;
    console.log(`${relative(process.cwd(), path)}:${line}: ${rule}: ${text}`);
  }
}
if (count > 0) {
  console.log(`${count} sentences or lines break the rules of language.`);
  process.exitCode = 1;
}
