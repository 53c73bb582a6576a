/** Figures of the source text: lines, files, importers, doors. The compiler that builds the project parses it and resolves its names. */
import { readFileSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import {
  type ClassDeclaration,
  type ExportDeclaration,
  type ImportDeclaration,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import {
  isCallExpression,
  isExportDeclaration,
  isGetAccessorDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isMethodDeclaration,
  isNamedExports,
  isNamedImports,
  isNewExpression,
  isSetAccessorDeclaration,
  isStringLiteral,
} from 'typescript/unstable/ast/is';
import {
  API,
  type Checker,
  type Symbol as CheckerSymbol,
  type Project,
  SymbolFlags,
} from 'typescript/unstable/sync';

export interface SourceFigures {
  /** TypeScript files and their lines, by top-level folder. */
  folders: Map<string, { files: number; lines: number }>;
  /** Lines of `src` that import or re-export names. */
  importLines: number;
  /** `index.ts` files below the door of a module. */
  innerIndexes: string[];
  /** The files of `src` that one other file imports, with that file. A file that is loaded by `import()` or as a worker does not count. */
  singleImporters: Map<string, string>;
  /** Imports of a module's inside by files of other modules or folders: `file -> target`. */
  importsPastDoor: { inSource: string[]; elsewhere: string[] };
  /** Names that each module hands out: exports, and the public methods of exported classes. */
  doorNames: Map<string, number>;
}

interface Import {
  /** Path of the target, relative to the project. */
  target: string;
  node: Node;
  /** By `import()`, or as the entry of a thread or process, `new URL('./worker.js', import.meta.url)`. */
  isLoadedApart: boolean;
}

/** Files outside of modules, and those of `utils`, are open to every module. */
const isShared = (path: string) => path.split('/').length < 3 || path.startsWith('src/utils/');
const moduleOf = (path: string) =>
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

  constructor(root: string, project: Project) {
    this.#root = root;
    this.#project = project;
    this.#checker = project.checker;
    for (const fileName of [...project.program.getSourceFileNames()].sort()) {
      const path = this.#pathOf(fileName);
      if (path.startsWith('..') || path.includes('node_modules/')) continue;
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
      for (const target of this.#declaringFiles(path, imports))
        if (target !== path) importers.set(target, (importers.get(target) ?? new Set()).add(path));
      const module = path === PACKAGE_DOOR ? 'the package' : isDoor(path) ? moduleOf(path) : undefined;
      if (module !== undefined) figures.doorNames.set(module, this.#namesOf(file));
    }
    for (const [path, files] of importers) {
      const [importer, ...others] = files;
      if (path.startsWith('src/') && !isDoor(path) && others.length === 0 && !loadedApart.has(path))
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
      const module = moduleOf(target);
      if (module === undefined || module === moduleOf(path) || isDoor(target)) continue;
      (path.startsWith('src/') ? inSource : elsewhere).push(`${path} -> ${target}`);
    }
  }

  /** The files that declare what a file imports. Re-exports lead there: they do not count as imports themselves. */
  *#declaringFiles(path: string, imports: Import[]): Generator<string> {
    const names: Node[] = [];
    for (const { target, node } of imports) {
      if (isExportDeclaration(node) && isDoor(path)) continue;
      const bindings = bindingsOf(node);
      if (bindings === undefined) yield target;
      else names.push(...bindings);
    }
    for (const symbol of this.#checker.getSymbolAtLocation(names)) {
      const declaration = symbol && this.#resolve(symbol).declarations[0];
      if (declaration !== undefined) yield this.#pathOf(declaration.path);
    }
  }

  #resolve(symbol: CheckerSymbol): CheckerSymbol {
    return (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : this.#checker.getAliasedSymbol(symbol);
  }

  /** How many names a file exports, with the public methods of its exported classes. */
  #namesOf(file: SourceFile): number {
    const module = this.#checker.getSymbolAtLocation(file);
    if (module === undefined) return 0;
    let names = 0;
    for (const exported of this.#checker.getExportsOfModule(module)) {
      names++;
      for (const declaration of this.#resolve(exported).declarations)
        if (declaration.kind === SyntaxKind.ClassDeclaration)
          names += publicMethodsOf(declaration.resolve(this.#project) as ClassDeclaration);
    }
    return names;
  }
}

const isImportOrReexport = (node: Node): node is ImportDeclaration | ExportDeclaration =>
  (isImportDeclaration(node) || isExportDeclaration(node)) && node.moduleSpecifier !== undefined;

/** Imports of the project's files: static ones, types, and files that are loaded apart. */
function importsOf(path: string, file: SourceFile): Import[] {
  const imports: Import[] = [];
  const add = (specifier: Node | undefined, node: Node, isLoadedApart: boolean) => {
    if (specifier === undefined || !isStringLiteral(specifier) || !specifier.text.startsWith('.')) return;
    const target = posix.join(posix.dirname(path), specifier.text).replace(/\.js$/, '.ts');
    imports.push({ target, node, isLoadedApart });
  };
  const visit = (node: Node): undefined => {
    if (isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword)
      add(node.arguments[0], node, true);
    else if (isNewExpression(node) && node.expression.getText() === 'URL')
      add(node.arguments?.[0], node, true);
    else if (isImportTypeNode(node) && isLiteralTypeNode(node.argument))
      add(node.argument.literal, node, false);
    node.forEachChild(visit);
  };
  for (const statement of file.statements)
    if (isImportOrReexport(statement)) add(statement.moduleSpecifier, statement, false);
    else visit(statement);
  return imports;
}

/** The names of an import or re-export; undefined if it takes the whole file. */
function bindingsOf(node: Node): Node[] | undefined {
  if (isExportDeclaration(node) && node.exportClause && isNamedExports(node.exportClause))
    return node.exportClause.elements.map(({ name }) => name);
  const bindings = isImportDeclaration(node) && node.importClause?.namedBindings;
  return bindings && isNamedImports(bindings) ? bindings.elements.map(({ name }) => name) : undefined;
}

function importLinesOf(file: SourceFile): number {
  return file.statements
    .filter((statement) => isImportOrReexport(statement))
    .reduce((lines, statement) => lines + statement.getText(file).split('\n').length, 0);
}

function publicMethodsOf(declaration: ClassDeclaration): number {
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
