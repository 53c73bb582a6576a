/**
 * Merges source files: `TYPESCRIPT=path/to/typescript@5.9 node tools/merge/merge.mjs [--check] PLAN...`. A plan lists new files, each
 * followed by the indented files that it takes, relative to `src/`; `rename FILE#OLD NEW` renames a top-level name that another file has
 * too. Inner `index.ts` files of the parts in the plan are deleted. All imports follow. The text of declarations stays as it is.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix, relative, resolve } from 'node:path';

const ts = createRequire(import.meta.url)(process.env.TYPESCRIPT ?? 'typescript');
const root = resolve(import.meta.dirname, '../..');
const args = process.argv.slice(2);
const checkOnly = args.includes('--check');
const plans = args.filter((arg) => !arg.startsWith('--'));

const targets = new Map();
const renames = new Map();
for (const plan of plans) {
  let sources;
  for (const line of readFileSync(plan, 'utf8').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    if (line.startsWith('rename ')) {
      const [, from, to] = line.split(/\s+/);
      renames.set(`src/${from}`, to);
    } else if (line.startsWith(' ')) sources.push(`src/${line.trim()}`);
    else {
      sources = [];
      targets.set(`src/${line.trim()}`, sources);
    }
  }
}
const targetOf = new Map(
  [...targets].flatMap(([target, sources]) => sources.map((source) => [source, target])),
);
const parts = new Set([...targets.keys()].map((file) => file.split('/')[1]));

const config = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config,
  ts.sys,
  root,
);
const program = ts.createProgram(config.fileNames, {
  ...config.options,
  incremental: false,
  tsBuildInfoFile: undefined,
  noEmit: true,
});
const checker = program.getTypeChecker();
const nameOf = (sourceFile) => relative(root, sourceFile.fileName);
const files = new Map(
  program
    .getSourceFiles()
    .filter((f) => !nameOf(f).startsWith('..') && !f.fileName.includes('node_modules'))
    .map((f) => [nameOf(f), f]),
);
const problems = [];
for (const source of targetOf.keys())
  if (!files.has(source) && !/\.(wat|tsv)$/.test(source)) problems.push(`no file ${source}`);
const isInnerIndex = (file) =>
  /^src\/[^/]+\/.+\/index\.ts$/.test(file) &&
  parts.has(file.split('/')[1]) &&
  !targetOf.has(file) &&
  file !== 'src/cli/commands/index.ts';
const isDoor = (file) => /^src\/[^/]+\/index\.ts$/.test(file);
const newPath = (file) => targetOf.get(file) ?? file;

const aliased = (symbol) =>
  symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
const moduleOf = (specifier) => {
  const symbol = checker.getSymbolAtLocation(specifier);
  const declared = symbol?.declarations?.find(ts.isSourceFile);
  return declared && files.has(nameOf(declared)) ? nameOf(declared) : undefined;
};
const fileOf = (symbol) => {
  const declaration = symbol?.declarations?.[0];
  return declaration && nameOf(declaration.getSourceFile());
};
const partOf = (file) => file.split('/').slice(0, 2).join('/');
/** The new file from which an importer of `module` takes a name: the declaring file, or the door of another part. */
function homeOf(module, symbol) {
  const declared = fileOf(symbol);
  const isOpen = declared?.startsWith('src/utils/') || declared?.split('/').length === 2;
  if (!declared || !files.has(declared) || isOpen || partOf(declared) === partOf(module))
    return declared && newPath(declared);
  return isInnerIndex(module) || targetOf.has(module) ? `${partOf(declared)}/index.ts` : newPath(module);
}
const relativePath = (from, to) => {
  const path = posix.relative(posix.dirname(from), to).replace(/\.ts$/, '.js');
  return path.startsWith('.') ? path : `./${path}`;
};

/** The imports of a file as records: local name, imported name, type or value, and the module by its new path. */
function readImports(file, declaration) {
  const text = declaration.moduleSpecifier.text;
  const module = moduleOf(declaration.moduleSpecifier);
  const at = (path) => (path === undefined ? text : { path });
  const clause = declaration.importClause;
  if (!clause) return [{ side: true, from: module ? at(newPath(module)) : text }];
  const records = [];
  const typeOnly = clause.isTypeOnly;
  if (clause.name)
    records.push({
      local: clause.name.text,
      kind: 'default',
      type: typeOnly,
      from: at(module && newPath(module)),
    });
  const bindings = clause.namedBindings;
  if (bindings && ts.isNamespaceImport(bindings)) {
    if (module && targetOf.has(module) && targets.get(targetOf.get(module)).length > 1)
      problems.push(`${file}: import * of ${module}`);
    records.push({
      local: bindings.name.text,
      kind: 'namespace',
      type: typeOnly,
      from: at(module && newPath(module)),
    });
  } else if (bindings)
    for (const element of bindings.elements) {
      const type = typeOnly || element.isTypeOnly;
      const local = element.name.text;
      let imported = (element.propertyName ?? element.name).text;
      let path = module && newPath(module);
      let symbol;
      if (module) {
        symbol = aliased(checker.getSymbolAtLocation(element.name));
        const own = targetOf.get(file) ?? file;
        const samePart = own.split('/')[1] === module.split('/')[1];
        if (!isDoor(module) || (samePart && file.startsWith('src/'))) {
          const declared = fileOf(symbol);
          if (!declared || !files.has(declared))
            problems.push(`${file}: ${imported} of ${module} is declared nowhere`);
          else {
            path = homeOf(module, symbol);
            if (isInnerIndex(module) || targetOf.has(module)) imported = renamed(declared, symbol.name);
          }
        }
      }
      records.push({ local, imported, kind: 'name', type, from: at(path), symbol });
    }
  return records;
}
const renamed = (file, name) => renames.get(`${file}#${name}`) ?? name;

function printImports(owner, records) {
  const byPath = new Map();
  const lines = [];
  for (const record of records) {
    const path = typeof record.from === 'string' ? record.from : relativePath(owner, record.from.path);
    if (record.side) lines.push(`import '${path}';`);
    else if (record.kind === 'namespace')
      lines.push(`import ${record.type ? 'type ' : ''}* as ${record.local} from '${path}';`);
    else {
      const entry = byPath.get(path) ?? { names: new Map() };
      byPath.set(path, entry);
      if (record.kind === 'default') {
        entry.default = record.local;
        entry.defaultType = record.type && entry.defaultType !== false;
      } else {
        const key = record.imported === record.local ? record.local : `${record.imported} as ${record.local}`;
        entry.names.set(key, record.type && (entry.names.get(key) ?? true));
      }
    }
  }
  for (const [path, entry] of byPath) {
    const names = [...entry.names];
    const allTypes = names.every(([, type]) => type);
    const named = names.map(([name, type]) => (type && !allTypes ? `type ${name}` : name)).join(', ');
    if (entry.default && (entry.defaultType || (names.length > 0 && allTypes))) {
      lines.push(`import ${entry.defaultType ? 'type ' : ''}${entry.default} from '${path}';`);
      if (names.length > 0) lines.push(`import type { ${named} } from '${path}';`);
    } else if (entry.default)
      lines.push(`import ${entry.default}${names.length > 0 ? `, { ${named} }` : ''} from '${path}';`);
    else lines.push(`import ${allTypes ? 'type ' : ''}{ ${named} } from '${path}';`);
  }
  return lines.join('\n');
}

/** Edits of a file: relative paths in strings, and re-exports. Imports are returned apart. */
function editsOf(file, owner) {
  const sourceFile = files.get(file);
  const edits = [];
  const imports = [];
  const visit = (node) => {
    if (ts.isImportDeclaration(node)) {
      imports.push(...readImports(file, node).map((record) => ({ ...record, node })));
      return;
    }
    if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
      edits.push({ start: node.getStart(), end: node.end, text: reexport(file, owner, node) });
      return;
    }
    const literal =
      ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateHead(node)
        ? node.text
        : undefined;
    if (literal && /^\.\.?\/./.test(literal)) {
      const moved = movedPath(file, owner, literal, node);
      if (moved !== undefined && moved !== literal)
        edits.push({ start: node.getStart() + 1, end: node.getStart() + 1 + literal.length, text: moved });
    }
    ts.forEachChild(node, visit);
  };
  visit(sourceFile);
  return { edits, imports };
}

function movedPath(file, owner, literal, node) {
  const [, path, query] = /^([^?]*)(\?.*)?$/.exec(literal);
  const inDist =
    file.startsWith('test/') ||
    file.startsWith('bench/') ||
    file.startsWith('tools/') ||
    file.startsWith('data-samples/');
  const absolute = posix.normalize(posix.join(dirname(file), path));
  const source = absolute.replace(/\.js$/, '.ts');
  if (files.has(source) && (targetOf.has(source) || isInnerIndex(source) || owner !== file)) {
    if (isInnerIndex(source)) {
      const names = namesTaken(node);
      const module = checker.getSymbolAtLocation(node);
      const found = new Set(
        names.map(
          (name) => module && newPath(fileOf(aliased(checker.tryGetMemberInModuleExports(name, module)))),
        ),
      );
      if (found.size !== 1 || found.has(undefined))
        problems.push(`${file}: dynamic import of ${source} takes ${names} from ${[...found]}`);
      else return relativePath(owner, [...found][0]) + (query ?? '');
      return undefined;
    }
    return relativePath(owner, newPath(source)) + (query ?? '');
  }
  if (owner === file || inDist) return undefined;
  const sibling = targetOf.get(absolute.replace(/\.wasm$/, '.wat'));
  const moved = sibling ? sibling.replace(/\.wat$/, '.wasm') : absolute;
  const from = posix.dirname(owner);
  if (!/\.(js|wasm|tsv|node|json|css|html)$/.test(path)) {
    // A path of the user, such as `./tilewright-data`.
    if (!existsSync(join(root, absolute))) return undefined;
    problems.push(`${file}: path ${literal}`);
    return undefined;
  }
  const result = posix.relative(from, moved);
  return (result.startsWith('.') ? result : `./${result}`) + (query ?? '');
}

/** The names that a dynamic import hands out: `const { a } = await import(..)` or `(await import(..)).a`. */
function namesTaken(node) {
  let current = node.parent;
  while (
    current &&
    (ts.isCallExpression(current) || ts.isAwaitExpression(current) || ts.isParenthesizedExpression(current))
  ) {
    if (
      current.parent &&
      ts.isPropertyAccessExpression(current.parent) &&
      current.parent.expression === current
    )
      return [current.parent.name.text];
    current = current.parent;
  }
  if (current && ts.isVariableDeclaration(current) && ts.isObjectBindingPattern(current.name))
    return current.name.elements.map((element) => (element.propertyName ?? element.name).text);
  return [];
}

function reexport(file, owner, node) {
  const module = moduleOf(node.moduleSpecifier);
  const stays = module && owner === file && !targetOf.has(module) && !isInnerIndex(module);
  if (!module || stays) return node.getText();
  const groups = new Map();
  const names = node.exportClause
    ? node.exportClause.elements.map((element) => ({
        as: element.name.text,
        type: node.isTypeOnly || element.isTypeOnly,
        symbol: aliased(checker.getSymbolAtLocation(element.name)),
      }))
    : checker.getExportsOfModule(checker.getSymbolAtLocation(node.moduleSpecifier)).map((symbol) => {
        const real = aliased(symbol);
        return { as: symbol.name, type: !(real.flags & ts.SymbolFlags.Value), symbol: real };
      });
  for (const { as, type, symbol } of names) {
    const declared = fileOf(symbol);
    const name = renamed(declared, symbol.name);
    const path = isDoor(module) && partOf(module) !== partOf(file) ? module : homeOf(module, symbol);
    if (path === owner) continue;
    const group = groups.get(path) ?? [];
    groups.set(path, group);
    const text = name === as ? name : `${name} as ${as}`;
    if (!group.some((entry) => entry.text === text)) group.push({ text, type });
  }
  return [...groups]
    .map(([path, group]) => {
      const all = group.every(({ type }) => type);
      return `export ${all ? 'type ' : ''}{ ${group.map(({ text, type }) => (type && !all ? 'type ' : '') + text).join(', ')} } from '${relativePath(owner, path)}';`;
    })
    .join('\n');
}

/** Replaces the text between positions; later edits first. */
function apply(text, edits) {
  for (const { start, end, text: replacement } of [...edits].sort(
    (a, b) => b.start - a.start || b.end - a.end,
  )) {
    text = text.slice(0, start) + replacement + text.slice(end);
  }
  return text;
}

const topLevel = (sourceFile) => {
  const names = new Map();
  const add = (name, statement) => names.set(name, [...(names.get(name) ?? []), statement]);
  const bind = (name, statement) => {
    if (ts.isIdentifier(name)) add(name.text, statement);
    else
      for (const element of name.elements)
        if (!ts.isOmittedExpression(element)) bind(element.name, statement);
  };
  for (const statement of sourceFile.statements) {
    if (ts.isVariableStatement(statement))
      for (const declaration of statement.declarationList.declarations) bind(declaration.name, statement);
    else if (statement.name && ts.isIdentifier(statement.name)) add(statement.name.text, statement);
  }
  return names;
};
const isExported = (statement) =>
  statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
const normalised = (text) => text.replace(/\s+/g, ' ');

/** Uses of exported names by other new files: `file#name`. A module that is loaded as a whole counts for all its names. */
const used = new Set();
const whole = new Set();
for (const [file, sourceFile] of files) {
  const owner = newPath(file);
  if (isInnerIndex(file)) continue;
  const visit = (node) => {
    if (ts.isIdentifier(node) || ts.isStringLiteral(node)) {
      if (ts.isIdentifier(node)) {
        const symbol = aliased(checker.getSymbolAtLocation(node));
        const declared = symbol && fileOf(symbol);
        if (declared && declared !== file && files.has(declared) && newPath(declared) !== owner)
          used.add(`${declared}#${symbol.name}`);
      } else if (
        /^\.\.?\/.*\.js/.test(node.text) &&
        !ts.isImportDeclaration(node.parent) &&
        !ts.isExportDeclaration(node.parent)
      ) {
        const path = posix.normalize(
          posix.join(dirname(file), node.text.replace(/\?.*/, '').replace(/\.js$/, '.ts')),
        );
        whole.add(path);
        const module = isInnerIndex(path) && checker.getSymbolAtLocation(node);
        for (const name of module ? namesTaken(node) : []) {
          const real = aliased(checker.tryGetMemberInModuleExports(name, module));
          used.add(`${fileOf(real)}#${real.name}`);
        }
      }
    } else if (ts.isTemplateExpression(node) && /^\.\.?\//.test(node.head.text))
      whole.add(
        posix.normalize(
          posix.join(dirname(file), node.head.text.replace(/\?.*/, '').replace(/\.js$/, '.ts')),
        ),
      );
    ts.forEachChild(node, visit);
  };
  visit(sourceFile);
  for (const node of sourceFile.statements)
    if (ts.isExportDeclaration(node) && node.moduleSpecifier && !node.exportClause)
      for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(node.moduleSpecifier))) {
        const real = aliased(symbol);
        used.add(`${fileOf(real)}#${real.name}`);
      }
}

/** Orders the sources of a file so that each comes after those whose values it imports; otherwise as listed. */
function ordered(sources) {
  const done = new Set();
  const result = [];
  const visit = (file) => {
    if (done.has(file)) return;
    done.add(file);
    for (const statement of files.get(file).statements)
      if (ts.isImportDeclaration(statement) && statement.importClause && !statement.importClause.isTypeOnly)
        for (const record of readImports(file, statement))
          if (!record.type && record.symbol) {
            const declared = fileOf(record.symbol);
            if (declared !== file && sources.includes(declared)) visit(declared);
          }
    result.push(file);
  };
  for (const source of sources) visit(source);
  return result;
}

function mergeFile(target, listed) {
  const sources = ordered(listed);
  const bodies = new Map();
  const records = [];
  const taken = new Map();
  for (const file of sources) {
    const sourceFile = files.get(file);
    const { edits, imports } = editsOf(file, target);
    const names = topLevel(sourceFile);
    const renamesHere = new Map();
    for (const name of names.keys())
      if (renames.has(`${file}#${name}`)) renamesHere.set(name, renames.get(`${file}#${name}`));
    const dropped = new Set();
    for (const [name, statements] of names) {
      const now = renamesHere.get(name) ?? name;
      const other = taken.get(now);
      if (other && other.file !== file) {
        const same =
          other.statements &&
          statements.length === 1 &&
          other.statements.length === 1 &&
          !isExported(statements[0]) &&
          normalised(other.statements[0].getText()) === normalised(statements[0].getText()) &&
          topNames(statements[0]).length === 1;
        if (same) dropped.add(statements[0]);
        else problems.push(`${target}: ${name} of ${file} is taken by ${other.file}`);
      } else taken.set(now, { file, statements });
    }
    for (const record of imports) {
      if (!record.local) continue;
      const inside = record.from.path === target;
      if (inside) {
        const now = renamed(fileOf(record.symbol), record.symbol.name);
        if (record.local !== now) renamesHere.set(record.local, now);
        continue;
      }
      const symbol = record.symbol ? renamed(fileOf(record.symbol), record.symbol.name) : '';
      const identity = `${typeof record.from === 'string' ? record.from : record.from.path}#${record.imported ?? record.kind}`;
      const other = taken.get(record.local);
      if (other && other.identity !== identity) {
        if (!(record.symbol && other.identity?.endsWith(`#${symbol}`) && other.symbol === record.symbol))
          problems.push(
            `${target}: import ${record.local} of ${file} (${identity}) is taken by ${other.file} (${other.identity ?? 'declared'})`,
          );
      } else taken.set(record.local, { file, identity, symbol: record.symbol });
      if (record.symbol && record.imported !== undefined) {
        const now = renamed(fileOf(record.symbol), record.symbol.name);
        if (
          now !== record.symbol.name &&
          record.local === record.symbol.name &&
          typeof record.from !== 'string'
        ) {
          record.imported = now;
          renamesHere.set(record.local, now);
          record.local = now;
        }
      }
    }
    const identifiers = new Set();
    const visit = (node) => {
      if (ts.isIdentifier(node)) {
        identifiers.add(node.text);
        const now = renamesHere.get(node.text);
        if (now !== undefined && !inImport(node)) {
          const shorthand = ts.isShorthandPropertyAssignment(node.parent) && node.parent.name === node;
          const symbol = shorthand
            ? checker.getShorthandAssignmentValueSymbol(node.parent)
            : checker.getSymbolAtLocation(node);
          const declaration = symbol?.declarations?.[0];
          const isTop =
            declaration &&
            (ts.isImportSpecifier(declaration)
              ? declaration.getSourceFile() === sourceFile
              : names
                  .get(node.text)
                  ?.some(
                    (s) =>
                      s === declaration ||
                      (s.pos <= declaration.pos &&
                        declaration.end <= s.end &&
                        topNames(s).includes(node.text) &&
                        isTopDeclaration(declaration, s)),
                  ));
          if (isTop)
            edits.push({
              start: node.getStart(),
              end: node.end,
              text: shorthand ? `${node.text}: ${now}` : now,
            });
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(sourceFile);
    for (const now of renamesHere.values())
      if (identifiers.has(now) && !imports.some((r) => r.local === now || r.imported === now))
        problems.push(`${file}: the new name ${now} occurs already`);
    for (const statement of dropped)
      edits.push({ start: statement.getFullStart(), end: statement.end, text: '' });
    for (const statement of sourceFile.statements) {
      if (!isExported(statement) || dropped.has(statement) || whole.has(file)) continue;
      const its = topNames(statement);
      if (its.length > 0 && its.every((name) => !used.has(`${file}#${name}`))) {
        const modifier = statement.modifiers.find(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
        edits.push({ start: modifier.getStart(), end: modifier.end + 1, text: '' });
      }
    }
    records.push(...imports.filter((record) => record.side || record.from.path !== target));
    const text = sourceFile.text;
    // The comment of a file stands before its first import, or has a blank line after it.
    const [first] = sourceFile.statements;
    const comments = ts.getLeadingCommentRanges(text, 0) ?? [];
    let bodyStart = 0;
    let comment = '';
    if (comments.length > 0) {
      const last =
        ts.isImportDeclaration(first) || (ts.isExportDeclaration(first) && first.moduleSpecifier)
          ? comments.length
          : comments.length - 1;
      const fileComments = comments.slice(0, last);
      const separate =
        last === comments.length ||
        /\n\s*\n/.test(text.slice(fileComments.at(-1)?.end ?? 0, comments[last]?.pos));
      if (fileComments.length > 0 && separate) {
        bodyStart = fileComments.at(-1).end;
        comment = text.slice(fileComments[0].pos, bodyStart);
      }
    }
    for (const statement of sourceFile.statements)
      if (ts.isImportDeclaration(statement))
        edits.push({
          start: Math.max(bodyStart, statement.getFullStart() + leadingComment(text, statement, bodyStart)),
          end: statement.end,
          text: '',
        });
    const inner = edits.filter(
      ({ start, end }, i) =>
        start >= bodyStart &&
        !edits.some(
          (o, j) =>
            j !== i && o.text === '' && o.start <= start && o.end >= end && o.end - o.start > end - start,
        ),
    );
    bodies.set(file, {
      comment,
      body: apply(text, [...inner, { start: 0, end: bodyStart, text: '' }]).trim(),
    });
  }
  const main = listed[0];
  const [shebang = ''] = /^#!.*\n/.exec(files.get(main).text) ?? [];
  const lead = shebang + bodies.get(main).comment;
  const sections = sources.map((file) => {
    const { comment, body } = bodies.get(file);
    return file === main || comment === '' ? body : `${comment}\n\n${body}`;
  });
  return `${lead}${lead ? '\n' : ''}${printImports(target, records)}\n\n${sections.filter((s) => s !== '').join('\n\n')}\n`;
}
function leadingComment(text, statement, bodyStart) {
  const comments = (ts.getLeadingCommentRanges(text, statement.getFullStart()) ?? []).filter(
    ({ pos }) => pos >= bodyStart,
  );
  return comments.length > 0 ? comments.at(-1).end - statement.getFullStart() : 0;
}
function topNames(statement) {
  const names = [];
  const bind = (name) => {
    if (ts.isIdentifier(name)) names.push(name.text);
    else for (const element of name.elements) if (!ts.isOmittedExpression(element)) bind(element.name);
  };
  if (ts.isVariableStatement(statement)) for (const d of statement.declarationList.declarations) bind(d.name);
  else if (statement.name && ts.isIdentifier(statement.name)) names.push(statement.name.text);
  return names;
}
function isTopDeclaration(declaration, statement) {
  for (let node = declaration; node && node !== statement; node = node.parent)
    if (node !== declaration && (ts.isFunctionLike(node) || ts.isBlock(node))) return false;
  return true;
}
const inImport = (node) => {
  for (let current = node; current; current = current.parent)
    if (ts.isImportDeclaration(current)) return true;
  return false;
};

/** Names of globals that a merged file would capture. */
function checkGlobals(target, sources) {
  const declared = new Map(
    sources.flatMap((file) =>
      [...topLevel(files.get(file)).keys()].map((name) => [renamed(file, name), file]),
    ),
  );
  for (const file of sources) {
    const visit = (node) => {
      if (
        ts.isIdentifier(node) &&
        declared.has(node.text) &&
        declared.get(node.text) !== file &&
        !inImport(node)
      ) {
        const symbol = checker.getSymbolAtLocation(node);
        const from = symbol?.declarations?.[0]?.getSourceFile();
        const isMember =
          (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) ||
          ts.isPropertyAssignment(node.parent) ||
          ts.isPropertySignature(node.parent);
        if (
          from &&
          !isMember &&
          !files.has(nameOf(from)) &&
          symbol.declarations.every(
            (d) => !ts.isPropertySignature(d) && !ts.isMethodSignature(d) && !ts.isPropertyDeclaration(d),
          )
        )
          problems.push(
            `${target}: ${node.text} in ${file} is a global, and ${declared.get(node.text)} declares the name`,
          );
      }
      ts.forEachChild(node, visit);
    };
    visit(files.get(file));
  }
}

const outputs = new Map();
for (const [target, sources] of targets) {
  if (sources.some((source) => !files.has(source))) {
    const wat = sources.filter((s) => s.endsWith('.wat') || s.endsWith('.tsv'));
    if (wat.length === 1) continue;
    continue;
  }
  checkGlobals(target, sources);
  outputs.set(target, mergeFile(target, sources));
}
for (const [file, sourceFile] of files) {
  if (targetOf.has(file) || isInnerIndex(file)) continue;
  const { edits, imports } = editsOf(file, file);
  const byNode = Map.groupBy
    ? Map.groupBy(imports, ({ node }) => node)
    : imports.reduce((m, r) => m.set(r.node, [...(m.get(r.node) ?? []), r]), new Map());
  for (const [node, records] of byNode) {
    const module = moduleOf(node.moduleSpecifier);
    if (!module || (!targetOf.has(module) && !isInnerIndex(module) && !isDoor(module))) continue;
    for (const record of records)
      if (record.symbol && record.kind === 'name')
        record.imported =
          isDoor(module) && record.from.path === module
            ? record.imported
            : renamed(fileOf(record.symbol), record.symbol.name);
    if (records.every(({ from }) => from.path === module) && !targetOf.has(module)) continue;
    edits.push({ start: node.getStart(), end: node.end, text: printImports(file, records) });
  }
  const before = sourceFile.text;
  const after = apply(before, edits);
  if (after !== before) outputs.set(file, after);
}

// Value imports of the new files must have no cycle.
const graph = new Map();
const because = new Map();
for (const [file, sourceFile] of files) {
  if (!file.startsWith('src/') || isInnerIndex(file)) continue;
  const from = newPath(file);
  const edges = graph.get(from) ?? new Set();
  graph.set(from, edges);
  for (const statement of sourceFile.statements)
    if (ts.isImportDeclaration(statement))
      for (const record of readImports(file, statement))
        if (record.from.path && record.from.path !== from) {
          edges.add(record.from.path);
          because.set(`${from} ${record.from.path}`, `${posix.basename(file)}:${record.local}`);
        }
}
const state = new Map();
const cycles = [];
const walk = (file, path) => {
  if (state.get(file) === 2) return;
  if (path.includes(file)) {
    const round = [...path.slice(path.indexOf(file)), file];
    cycles.push(
      round
        .map((step, i) =>
          i + 1 < round.length ? `${step} (${because.get(`${step} ${round[i + 1]}`)})` : step,
        )
        .join(' -> '),
    );
    return;
  }
  for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
  state.set(file, 2);
};
for (const file of graph.keys()) walk(file, []);

for (const line of new Set(problems)) console.log(`problem: ${line}`);
for (const line of cycles) console.log(`cycle: ${line}`);
for (const [target, sources] of targets) {
  const lines = outputs.get(target)?.split('\n').length ?? 0;
  if (checkOnly) console.log(`${String(lines).padStart(5)} ${target} (${sources.length})`);
}
for (const part of parts) {
  const all = [...files.keys()].filter((file) => file.startsWith(`src/${part}/`) && !isInnerIndex(file));
  const unplanned = all.filter((file) => !targetOf.has(file));
  console.log(`${part}: ${new Set(all.map(newPath)).size} files after, unplanned: ${unplanned.join(' ')}`);
}
if (checkOnly || problems.length > 0 || cycles.length > 0)
  process.exit(problems.length + cycles.length > 0 ? 1 : 0);

for (const file of files.keys()) if (targetOf.has(file) || isInnerIndex(file)) rmSync(join(root, file));
for (const [target, [source]] of targets)
  if (/\.(wat|tsv)$/.test(target)) {
    const text = readFileSync(join(root, source));
    rmSync(join(root, source));
    outputs.set(target, text);
  }
for (const [file, text] of outputs) {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}
const prune = (folder) => {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) prune(join(folder, entry.name));
  if (readdirSync(folder).length === 0) rmdirSync(folder);
};
prune(join(root, 'src'));

// Comments and pages name files.
const mentions = [...targetOf].flatMap(([source, target]) => {
  const steps = source.split('/');
  return steps.slice(source.endsWith('/index.ts') ? 2 : 1).map((_, i) => {
    const suffix = steps.slice(i + 1).join('/');
    const now = i === steps.length - 2 ? posix.basename(target) : target.split('/').slice(1).join('/');
    return [new RegExp(`(?<![\\w./-])(src/)?${suffix.replaceAll('.', '\\.')}(?![\\w-])`, 'g'), `$1${now}`];
  });
});
for (const folder of ['src', 'test', 'bench', 'docs', 'tools'])
  for (const entry of readdirSync(join(root, folder), { recursive: true })) {
    if (!/\.(ts|md|py|wat)$/.test(entry)) continue;
    const path = join(root, folder, entry);
    const before = readFileSync(path, 'utf8');
    const after = mentions.reduce((text, [pattern, now]) => text.replace(pattern, now), before);
    if (after !== before) writeFileSync(path, after);
  }
