import { Argument, Command, type Option } from 'commander';
import { print } from '../output/index.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

const USAGE = `
Load the script in the start-up file of the shell:
  bash  source <(tilewright completion bash)
  zsh   source <(tilewright completion zsh)
  fish  tilewright completion fish | source`;

/** `all` makes every command of the program. */
export function completionCommand(all: () => Promise<Command[]>): Command {
  return new Command('completion')
    .description('print a script that completes commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', USAGE)
    .action(async (shell: (typeof SHELLS)[number]) => {
      const contexts = contextsOf(await all());
      print(shell === 'fish' ? fishScript(contexts) : bashScript(contexts, shell));
    });
}

/** The words that can follow the names of a command and its subcommand. */
interface Context {
  /** Names from the command on; empty for the program. */
  path: string[];
  subcommands: Command[];
  options: Option[];
}

function contextsOf(commands: readonly Command[], path: string[] = []): Context[] {
  const below = commands.flatMap((command) => {
    const own = [...path, command.name()];
    const [context, ...others] = contextsOf(command.commands, own);
    return [{ ...context!, options: command.options.filter(({ hidden }) => !hidden) }, ...others];
  });
  return [{ path, subcommands: [...commands], options: [] }, ...below];
}

const wordsOf = ({ subcommands, options }: Context): string[] => [
  ...subcommands.map((command) => command.name()),
  ...options.flatMap(({ long }) => long ?? []),
  '--help',
];

/** Completes by the longest known path; after a flag and elsewhere, the shell completes file names. */
function bashScript(contexts: Context[], shell: 'bash' | 'zsh'): string {
  const cases = contexts
    .filter(({ path }) => path.length > 0)
    .map(
      (context) =>
        `      '${context.path.join(' ')}') path="$next"; words='${wordsOf(context).join(' ')}' ;;`,
    );
  const script = `_tilewright() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' next words
  words='${wordsOf(contexts[0]!).join(' ')} --version'
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in
${cases.join('\n')}
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tilewright tilewright`;
  return shell === 'zsh' ? `autoload -Uz bashcompinit && bashcompinit\n${script}` : script;
}

function fishScript(contexts: Context[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  return contexts
    .flatMap(({ path, subcommands, options }) => {
      const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
      const names = subcommands.map((command) => command.name());
      const isFirst = path.length === 0 ? ['__fish_use_subcommand'] : seen;
      const before =
        names.length > 0 && path.length > 0 ? [`not __fish_seen_subcommand_from ${names.join(' ')}`] : [];
      const when = quoted([...isFirst, ...before].join('; and '));
      return [
        ...subcommands.map(
          (command) =>
            `complete -c tilewright -n ${when} -f -a ${command.name()} -d ${quoted(command.description())}`,
        ),
        ...options.map(
          ({ long, description, required }) =>
            `complete -c tilewright -n ${quoted(seen.join('; and '))} -l ${long!.slice(2)}${required ? ' -r' : ''} -d ${quoted(description)}`,
        ),
      ];
    })
    .join('\n');
}
