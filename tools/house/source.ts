/** Figures of the source text: lines, files, importers, doors. The compiler that builds the project parses it and resolves its names. */
import { readFileSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import {
  type ClassLikeDeclaration,
  type ExportDeclaration,
  type ImportDeclaration,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import {
  isAwaitExpression,
  isCallExpression,
  isClassLikeDeclaration,
  isExportDeclaration,
  isExternalModuleReference,
  isGetAccessorDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isMethodDeclaration,
  isNamespaceImport,
  isNewExpression,
  isObjectBindingPattern,
  isQualifiedName,
  isSetAccessorDeclaration,
  isStringLiteralLikeNode,
  isTemplateExpression,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import {
  API,
  type Checker,
  type Symbol as CheckerSymbol,
  type NodeHandle,
  type Project,
  SymbolFlags,
} from 'typescript/unstable/sync';

export interface SourceFigures {
  /** TypeScript files and their lines, by top-level folder. */
  folders: Map<string, { files: number; lines: number }>;
  /** Lines of `src` that import or re-export names. */
  importLines: number;
  /** `index.ts` files below the door of a part. */
  innerIndexes: string[];
  /** The files of `src` that one other file imports, with that file. A file that is loaded by `import()` or as a worker does not count. */
  singleImporters: Map<string, string>;
  /** Imports of a part's inside by files of other parts or folders: `file -> target`. */
  importsPastDoor: { inSource: string[]; elsewhere: string[] };
  /** Names that the door of each part hands out: exports, and the public methods that exported classes declare. */
  doorNames: Map<string, number>;
}

interface Import {
  /** Path of the target, relative to the project. */
  target: string;
  node: Node;
  /** By `import()`, or as the entry of a thread or process, `new URL('./worker.bundle.js', import.meta.url)`. */
  isLoadedApart: boolean;
}

/** Files directly in `src/`, and those of `utils`, are open to every part. */
const isShared = (path: string) => path.split('/').length < 3 || path.startsWith('src/utils/');
const partOf = (path: string) =>
  path.startsWith('src/') && !isShared(path) ? path.split('/')[1] : undefined;
const isDoor = (path: string) => /^src\/[^/]+\/index\.ts$/.test(path);
/** The package's own door, by `exports` of package.json. */
const PACKAGE_DOOR = 'src/node.ts';

/** Reads the project in a folder, whose `tsconfig.json` names its files. */
export function measureSource(root: string): SourceFigures {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
    const project = snapshot.getProjects()[0];
    if (project === undefined) throw new Error(`cannot open ${join(root, 'tsconfig.json')}`);
    return new SourceReader(root, project).figures();
  } finally {
    api.close();
  }
}

class SourceReader {
  readonly #root: string;
  readonly #project: Project;
  readonly #checker: Checker;
  readonly #files = new Map<string, SourceFile>();
  readonly #exports = new Map<string, Map<string, string>>();

  constructor(root: string, project: Project) {
    this.#root = root;
    this.#project = project;
    this.#checker = project.checker;
    for (const fileName of [...project.program.getSourceFileNames()].sort()) {
      const path = this.#pathOf(fileName);
      if (path.startsWith('..') || path.includes('node_modules/') || !path.endsWith('.ts')) continue;
      const file = project.program.getSourceFile(fileName);
      if (file !== undefined) this.#files.set(path, file);
    }
  }

  figures(): SourceFigures {
    const figures: SourceFigures = {
      folders: new Map(),
      importLines: 0,
      innerIndexes: [...this.#files.keys()].filter((path) => /^src\/[^/]+\/.+\/index\.ts$/.test(path)),
      singleImporters: new Map(),
      importsPastDoor: { inSource: [], elsewhere: [] },
      doorNames: new Map(),
    };
    const importers = new Map<string, Set<string>>();
    const loadedApart = new Set<string>();
    for (const [path, file] of this.#files) {
      const folder = path.split('/', 1)[0]!;
      const sum = figures.folders.get(folder) ?? { files: 0, lines: 0 };
      const lines = readFileSync(join(this.#root, path), 'utf8').split('\n').length - 1;
      figures.folders.set(folder, { files: sum.files + 1, lines: sum.lines + lines });

      const imports = importsOf(path, file);
      this.#notePassedDoors(path, imports, figures.importsPastDoor);
      if (folder !== 'src') continue;
      figures.importLines += importLinesOf(file);
      for (const { target, isLoadedApart } of imports) if (isLoadedApart) loadedApart.add(target);
      for (const target of this.#declaringFiles(imports))
        if (target !== path) importers.set(target, (importers.get(target) ?? new Set()).add(path));
      const part = path === PACKAGE_DOOR ? 'the package' : isDoor(path) ? partOf(path) : undefined;
      if (part !== undefined)
        figures.doorNames.set(part, this.#namesOf(this.#checker.getSymbolAtLocation(file)));
    }
    for (const [path, files] of importers) {
      const [importer, ...others] = files;
      if (
        this.#files.has(path) &&
        path.startsWith('src/') &&
        !isDoor(path) &&
        others.length === 0 &&
        !loadedApart.has(path)
      )
        figures.singleImporters.set(path, importer!);
    }
    return figures;
  }

  #pathOf(fileName: string): string {
    return relative(this.#root, fileName).replaceAll(sep, '/');
  }

  #notePassedDoors(
    path: string,
    imports: Import[],
    { inSource, elsewhere }: SourceFigures['importsPastDoor'],
  ): void {
    const targets = new Set(imports.map(({ target }) => target));
    for (const target of targets) {
      const part = partOf(target);
      if (part === undefined || part === partOf(path) || isDoor(target)) continue;
      (path.startsWith('src/') ? inSource : elsewhere).push(`${path} -> ${target}`);
    }
  }

  /** The files that declare what a file imports, through doors. A re-export hands names on and does not count as an import. */
  *#declaringFiles(imports: Import[]): Generator<string> {
    for (const { target, node } of imports) {
      if (isExportDeclaration(node)) continue;
      const names = importedNames(node);
      if (names === undefined && !isDoor(target)) yield target;
      else
        for (const [name, path] of this.#exportsOf(target))
          if (names === undefined || names.includes(name)) yield path;
    }
  }

  /** The names that a file exports, each with the file that declares it. */
  #exportsOf(path: string): Map<string, string> {
    let exports = this.#exports.get(path);
    if (exports !== undefined) return exports;
    exports = new Map();
    this.#exports.set(path, exports);
    const file = this.#files.get(path);
    const module = file && this.#checker.getSymbolAtLocation(file);
    for (const exported of module ? this.#checker.getExportsOfModule(module) : []) {
      const declaration = this.#resolve(exported).declarations[0];
      if (declaration !== undefined) exports.set(exported.name, this.#pathOf(declaration.path));
    }
    return exports;
  }

  #resolve(symbol: CheckerSymbol): CheckerSymbol {
    return (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : this.#checker.getAliasedSymbol(symbol);
  }

  /** How many names a file or namespace exports, with the public methods that its exported classes declare. */
  #namesOf(module: CheckerSymbol | undefined): number {
    if (module === undefined) return 0;
    let names = 0;
    for (const exported of this.#checker.getExportsOfModule(module)) {
      names++;
      const symbol = this.#resolve(exported);
      if ((symbol.flags & SymbolFlags.ValueModule) !== 0) names += this.#namesOf(symbol);
      for (const declaration of symbol.declarations) names += this.#methodsOf(declaration);
    }
    return names;
  }

  #methodsOf(declaration: NodeHandle): number {
    const { ClassDeclaration, VariableDeclaration } = SyntaxKind;
    if (declaration.kind !== ClassDeclaration && declaration.kind !== VariableDeclaration) return 0;
    const node = declaration.resolve(this.#project);
    const value = node && isVariableDeclaration(node) ? node.initializer : node;
    return value && isClassLikeDeclaration(value) ? publicMethodsOf(value) : 0;
  }
}

const isImportOrReexport = (node: Node): node is ImportDeclaration | ExportDeclaration =>
  (isImportDeclaration(node) || isExportDeclaration(node)) && node.moduleSpecifier !== undefined;

/** Imports of the project's files: static ones, types, and files that are loaded apart. */
function importsOf(path: string, file: SourceFile): Import[] {
  const imports: Import[] = [];
  const add = (specifier: Node | undefined, node: Node, isLoadedApart: boolean) => {
    const relativePath = specifier && fileOf(specifier);
    if (relativePath === undefined) return;
    imports.push({ target: posix.join(posix.dirname(path), relativePath), node, isLoadedApart });
  };
  const visit = (node: Node): undefined => {
    if (isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword)
      add(node.arguments[0], node, true);
    else if (isNewExpression(node) && node.expression.getText() === 'URL')
      add(node.arguments?.[0], node, true);
    else if (isImportTypeNode(node) && isLiteralTypeNode(node.argument))
      add(node.argument.literal, node, false);
    else if (isExternalModuleReference(node)) add(node.expression, node, false);
    node.forEachChild(visit);
  };
  for (const statement of file.statements)
    if (isImportOrReexport(statement)) add(statement.moduleSpecifier, statement, false);
    else visit(statement);
  return imports;
}

/**
 * The TypeScript file of a specifier such as `'./tile.js'`, of its bundle `'./tile.bundle.js'`, or of a template that only varies the
 * query: `./tile.js?${kind}`.
 */
function fileOf(specifier: Node): string | undefined {
  const isTemplate = isTemplateExpression(specifier);
  if (!isTemplate && !isStringLiteralLikeNode(specifier)) return undefined;
  const text = isTemplate ? specifier.head.text : specifier.text;
  const [, file] = (isTemplate ? /^(\..*)\.js\?/ : /^(\..*?)(?:\.bundle)?\.js$/).exec(text) ?? [];
  return file && `${file}.ts`;
}

/** The exports that an import takes from its file; undefined if it takes all. */
function importedNames(node: Node): string[] | undefined {
  if (isImportTypeNode(node)) {
    let name = node.qualifier;
    while (name && isQualifiedName(name)) name = name.left;
    return name && [name.text];
  }
  if (isCallExpression(node)) {
    const variable = isAwaitExpression(node.parent) ? node.parent.parent : undefined;
    if (!variable || !isVariableDeclaration(variable) || !isObjectBindingPattern(variable.name))
      return undefined;
    return variable.name.elements.map(({ propertyName, name }) => (propertyName ?? name)!.getText());
  }
  const clause = isImportDeclaration(node) ? node.importClause : undefined;
  if (clause === undefined || (clause.namedBindings && isNamespaceImport(clause.namedBindings)))
    return undefined;
  const names =
    clause.namedBindings?.elements.map(({ propertyName, name }) => (propertyName ?? name).text) ?? [];
  return clause.name ? ['default', ...names] : names;
}

function importLinesOf(file: SourceFile): number {
  return file.statements
    .filter((statement) => isImportOrReexport(statement))
    .reduce((lines, statement) => lines + statement.getText(file).split('\n').length, 0);
}

function publicMethodsOf(declaration: ClassLikeDeclaration): number {
  const names = new Set<string>();
  for (const member of declaration.members) {
    const isMethod =
      isMethodDeclaration(member) || isGetAccessorDeclaration(member) || isSetAccessorDeclaration(member);
    if (!isMethod || member.name.kind === SyntaxKind.PrivateIdentifier) continue;
    const isPublic = !member.modifiers?.some(
      ({ kind }) => kind === SyntaxKind.PrivateKeyword || kind === SyntaxKind.ProtectedKeyword,
    );
    if (isPublic) names.add(member.name.getText());
  }
  return names.size;
}
