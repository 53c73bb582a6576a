/** `tilewright completion`: scripts for bash, zsh and fish that complete commands and flags. */
import { Argument, Command, type Option } from 'commander';

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
      process.stdout.write(`${shell === 'fish' ? fishScript(contexts) : bashScript(contexts, shell)}\n`);
    });
}

/** The words that can follow the names of a command and its subcommand. */
interface Context {
  /** Names from the command on; empty for the program. */
  path: string[];
  subcommands: Command[];
  options: Option[];
  /** False if the command accepts no arguments, so that only flags can follow. */
  hasArguments: boolean;
  /** The values of an argument that allows only these. */
  choices: readonly string[];
}

function contextsOf(commands: readonly Command[], path: string[] = []): Context[] {
  const below = commands.flatMap((command) => {
    const [context, ...others] = contextsOf(command.commands, [...path, command.name()]);
    const { registeredArguments } = command;
    const own: Context = {
      ...context!,
      options: command.options.filter(({ hidden }) => !hidden),
      hasArguments: registeredArguments.length > 0,
      choices: registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    };
    return [own, ...others];
  });
  return [{ path, subcommands: [...commands], options: [], hasArguments: false, choices: [] }, ...below];
}

const namesOf = (commands: Command[]): string[] => commands.map((command) => command.name());

const flagsOf = ({ options, path }: Context): string[] => [
  ...options.flatMap(({ long }) => long ?? []),
  '--help',
  ...(path.length === 0 ? ['--version'] : []),
];

/** The words offered before the user types a dash. None: the shell completes file names. */
function wordsOf(context: Context): string[] {
  const { subcommands, choices, hasArguments } = context;
  const words = [...namesOf(subcommands), ...choices];
  return words.length > 0 || hasArguments ? words : flagsOf(context);
}

/**
 * Completes by the longest known path. The shell completes file names if the script offers no words. `path` and `words` are
 * special variables in zsh, so the script has other names for them.
 */
function bashScript(contexts: Context[], shell: 'bash' | 'zsh'): string {
  const cases = contexts.map((context) => {
    const valued = context.options.filter(({ required }) => required).map(({ long }) => long);
    return `      '${context.path.join(' ')}') known="$next"; names='${wordsOf(context).join(' ')}'; flags='${flagsOf(context).join(' ')}'; valued=' ${valued.join(' ')} ' ;;`;
  });
  const values = contexts.flatMap(({ path, options }) =>
    options.flatMap(({ argChoices, long }) =>
      argChoices === undefined ? [] : `    '${path.join(' ')} ${long}') offered='${argChoices.join(' ')}' ;;`,
    ),
  );
  const script = `_tilewright() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local IFS=$' \\t\\n' known='' next='' word names flags valued offered
  for word in '' "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    next="\${known:+$known }$word"
    case "$next" in
${cases.join('\n')}
    esac
  done
  offered="$names"
  [[ "$current" == -* ]] && offered="$flags"
  [[ "$valued" == *" $previous "* ]] && offered=''
  case "$known $previous" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -o default -F _tilewright tilewright`;
  return shell === 'zsh' ? `${ZSH_SETUP}\n${script}` : script;
}

/** zsh has the commands of bash after bashcompinit, which needs compinit. */
const ZSH_SETUP = `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit`;

function fishScript(contexts: Context[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const values = (choices: readonly string[] = []) =>
    choices.length > 0 ? ` -f -a '${choices.join(' ')}'` : '';
  return contexts
    .flatMap(({ path, subcommands, options, choices }) => {
      const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
      const names = namesOf(subcommands);
      const isFirst = path.length === 0 ? ['__fish_use_subcommand'] : seen;
      const before =
        names.length > 0 && path.length > 0 ? [`not __fish_seen_subcommand_from ${names.join(' ')}`] : [];
      const when = quoted([...isFirst, ...before].join('; and '));
      return [
        ...subcommands.map(
          (command) =>
            `complete -c tilewright -n ${when} -f -a ${command.name()} -d ${quoted(command.description())}`,
        ),
        ...(choices.length > 0 ? [`complete -c tilewright -n ${when}${values(choices)}`] : []),
        ...options.map(
          ({ long, description, required, argChoices }) =>
            `complete -c tilewright -n ${quoted(seen.join('; and '))} -l ${long!.slice(2)}${required ? ' -r' : ''}${values(argChoices)} -d ${quoted(description)}`,
        ),
      ];
    })
    .join('\n');
}
