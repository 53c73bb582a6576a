/** docs/reference/cli.md and configuration.md list every command and flag, from commander's objects. UPDATE_DOCS=1 writes them again. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Command, Option } from 'commander';
import { allCommands } from '../../src/cli/commands/registry.js';

const page = (name: string) => fileURLToPath(new URL(`../../../docs/reference/${name}`, import.meta.url));

/** Groups whose flags mean the same in every command that has them. */
const SHARED_GROUPS = ['Which tiles:', 'Where:', 'Resources:', 'Output:'];

const CLI_HEAD = `# Command line

This page is generated from the program; \`tilewright COMMAND --help\` prints the same for one command. [Configuration](configuration.md)
lists the environment variable and the configuration key of each flag.

Exit codes are the same for all commands:

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed; for \`ingest\`: every input failed; for \`series\` and \`spectrum\`: no tile at the place |
| 2 | wrong usage |
| 3 | some inputs failed; each is named |

The codes stay the same if the reader of a pipe leaves early (\`| head\`). Ctrl-C and SIGTERM cancel the work, and the command then ends by that
signal, which shells show as 130 or 143, so that a shell loop stops too. \`serve\` ends with 0.
[Predict](../how-to/train.md#apply-models) gives 1 a further meaning.

`;

const CONFIGURATION_HEAD = `# Configuration

This page is generated from the program. You can set every flag in three ways: on the command line, as an environment variable, or as a key
of the JSON file that \`--config\` names, such as \`{"data": "/srv/tiles", "max-cloud": 20}\`. The command line overrides the environment, the
environment overrides the file, and the file overrides the default. For a flag without a value, set the variable or the key to \`true\` or
\`false\`. If the file has a key that no command knows, the program reports an error. Keys of other commands are ignored.

These environment variables do not belong to a flag:

| variable | meaning |
|---|---|
| \`TILEWRIGHT_DEBUG=1\` | for errors of the operating system (\`TW_CLI_SYSTEM\`) and unexpected errors (\`TW_CLI_INTERNAL\`), the program also prints the stack |
| \`NODE_DISABLE_COMPILE_CACHE=1\` | commands store no compiled code. Without this variable, on Node 22.1 or later, commands store some megabytes of compiled code in \`~/.cache/tilewright\`, in the folder \`tilewright\` of \`XDG_CACHE_HOME\`, or in the folder of \`NODE_COMPILE_CACHE\` |
| \`AWS_ENDPOINT_URL_S3\`, \`AWS_ACCESS_KEY_ID\`, \`AWS_SECRET_ACCESS_KEY\`, \`AWS_REGION\`, \`AWS_PROFILE\` and other variables of the AWS tools | endpoint and credentials of an object store in S3 |
| \`CXX\` | the compiler that builds the oneDNN addon at installation; \`g++\` by default |

## Flags, variables and keys

The key is the name of the flag without \`--\`.

| flag | variable | commands | meaning |
|---|---|---|---|
`;

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim();

/** Defaults that depend on the machine have a description, or are named here. */
function defaultOf(option: Option): string {
  if (option.name() === 'cores') return 'all cores';
  if (option.defaultValueDescription) return option.defaultValueDescription;
  const value: unknown = option.defaultValue;
  if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) return '';
  return `\`${Array.isArray(value) ? value.join(',') : String(value)}\``;
}

function meaningOf(option: Option): string {
  const choices = option.argChoices?.map((choice) => `\`${choice}\``).join(', ');
  const value = defaultOf(option);
  const parts = [
    cell(option.description),
    choices ? `One of ${choices}.` : '',
    option.mandatory && value === '' ? 'Required.' : '',
    value === '' ? '' : `Default: ${value}.`,
  ].filter((part) => part !== '');
  return parts
    .map((part, at) => (at < parts.length - 1 && !part.endsWith('.') ? `${part}.` : part))
    .join(' ');
}

const visible = (command: Command) =>
  command.options.filter(({ hidden, long }) => !hidden && long !== '--version');
const flagTable = (options: Option[]) =>
  `| flag | meaning |\n|---|---|\n${options.map((option) => `| \`${cell(option.flags)}\` | ${meaningOf(option)} |\n`).join('')}\n`;
const sharedGroupOf = (option: Option) =>
  SHARED_GROUPS.find((group) => group === option.helpGroupHeading) ?? undefined;

const headingOf = (group: string) => `Flags: ${group.slice(0, -1).toLowerCase()}`;
const anchorOf = (group: string) =>
  `#${headingOf(group).toLowerCase().replaceAll(':', '').replaceAll(' ', '-')}`;
const linkOf = (group: string) => `[${group.slice(0, -1).toLowerCase()}](${anchorOf(group)})`;

/** A flag of more commands than this is listed by its group. */
const MOST = 15;

function commandSection(command: Command, parents: string, shared: Map<string, Option[]>): string {
  const name = `${parents} ${command.name()}`;
  if (command.commands.length > 0) {
    const below = command.commands.filter((one) => one.name() !== 'help');
    const sections = below.map((one) => commandSection(one, name, shared));
    return `## ${name.replace('tilewright ', '')}\n\n${sentence(command.description())}\n\n${sections.join('')}`;
  }
  const depth = parents.includes(' ') ? '###' : '##';
  const options = visible(command);
  const own = options.filter((option) => {
    const group = sharedGroupOf(option);
    // A flag of a shared group with another meaning stays with the command.
    return (
      !group ||
      meaningOf(shared.get(group)!.find((o) => o.flags === option.flags) ?? option) !== meaningOf(option)
    );
  });
  const others = SHARED_GROUPS.map((group) => {
    const names = options
      .filter((o) => !own.includes(o) && sharedGroupOf(o) === group)
      .map((o) => `\`${o.long}\``);
    return names.length === 0 ? '' : `${linkOf(group)}: ${names.join(', ')}`;
  }).filter((text) => text !== '');
  const operands = command.registeredArguments.map(
    (argument) => `| \`${argument.name()}\` | ${cell(argument.description)} |\n`,
  );
  return [
    `${depth} ${name.replace('tilewright ', '')}\n\n${sentence(command.description())}\n\n`,
    `    ${name} ${command.usage()}\n\n`,
    operands.length > 0 ? `| argument | meaning |\n|---|---|\n${operands.join('')}\n` : '',
    own.length > 0 ? flagTable(own) : '',
    others.length > 0 ? `Shared flags: ${others.join('; ')}.\n\n` : '',
  ].join('');
}

function sentence(text: string): string {
  const one = cell(text);
  return `${one[0]!.toUpperCase()}${one.slice(1)}${/[.!?]$/.test(one) ? '' : '.'}`;
}

/** Commands without subcommands, each with its name as it is typed. */
function leaves(commands: readonly Command[], parents = ''): [string, Command][] {
  return commands
    .filter((command) => command.name() !== 'help')
    .flatMap((command) =>
      command.commands.length > 0
        ? leaves(command.commands, `${parents}${command.name()} `)
        : [[`${parents}${command.name()}`, command] as [string, Command]],
    );
}

async function compare(name: string, expected: string): Promise<void> {
  if (process.env.UPDATE_DOCS) await writeFile(page(name), expected);
  assert.equal(
    await readFile(page(name), 'utf8'),
    expected,
    'run: UPDATE_DOCS=1 npm test -- docs/command-line',
  );
}

test('docs/reference/cli.md lists every command and its flags', async () => {
  const commands = await allCommands();
  const shared = new Map<string, Option[]>(SHARED_GROUPS.map((group) => [group, []]));
  for (const option of leaves(commands).flatMap(([, command]) => visible(command))) {
    const group = shared.get(option.helpGroupHeading ?? '');
    if (group && !group.some((one) => one.flags === option.flags)) group.push(option);
  }
  const sections = commands.map((command) => commandSection(command, 'tilewright', shared));
  const groups = [...shared].map(([group, options]) => `## ${headingOf(group)}\n\n${flagTable(options)}`);
  await compare('cli.md', `${CLI_HEAD}${sections.join('')}${groups.join('')}`.replace(/\n+$/, '\n'));
});

test('docs/reference/configuration.md lists the variable and key of every flag', async () => {
  const rows = new Map<string, { option: Option; commands: string[] }>();
  for (const [name, command] of leaves(await allCommands())) {
    for (const option of visible(command)) {
      if (!option.envVar) continue;
      const key = `${option.long} ${option.description}`;
      const row = rows.get(key) ?? { option, commands: [] };
      row.commands.push(name);
      rows.set(key, row);
    }
  }
  const lines = [...rows.values()]
    .sort((a, b) => (a.option.long! < b.option.long! ? -1 : a.option.long! > b.option.long! ? 1 : 0))
    .map(({ option, commands }) => {
      const group = sharedGroupOf(option);
      const names =
        commands.length > MOST
          ? `all with the flags [${group?.slice(0, -1).toLowerCase()}](cli.md${anchorOf(group!)})`
          : commands.map((c) => `\`${c}\``).join(', ');
      return `| \`${option.long}\` | \`${option.envVar}\` | ${names} | ${meaningOf(option)} |\n`;
    });
  assert.ok(lines.length > 50);
  await compare('configuration.md', CONFIGURATION_HEAD + lines.join(''));
});
