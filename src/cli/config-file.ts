/** Values of flags from environment variables and from the config file. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { excerpt, messageOf } from '../errors.js';
import { parseJson } from '../utils/json-text.js';
import { badConfigFile } from './errors.js';
import { isHostOption } from './options.js';

/** Parses the value of a boolean flag in the environment or the config file. */
function parseBooleanOption(value: string): boolean {
  if (['true', '1'].includes(value)) return true;
  if (['false', '0', ''].includes(value)) return false;
  throw new InvalidArgumentError('It must be true or false.');
}

/** Parses boolean flags in the environment, because commander interprets any text as true. */
export function applyEnvironment(command: Command): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (!option.isBoolean() || command.getOptionValueSource(name) !== 'env') continue;
    const value = process.env[option.envVar!]!;
    try {
      command.setOptionValueWithSource(name, parseBooleanOption(value), 'env');
    } catch (error) {
      command.error(`error: ${option.envVar} is "${value}". ${messageOf(error)}`);
    }
  }
}

/**
 * Applies the config file to flags that neither the command line nor the environment sets. Throws TW_CLI_CONFIG, also for a key that
 * none of `all` commands knows.
 */
export async function applyConfigFile(command: Command, all: () => Promise<Command[]>): Promise<void> {
  const file = command.getOptionValue('config') as string | undefined;
  if (!file) return;
  const config = readConfig(file);
  const withSubcommands = (await all()).flatMap((one) => [one, ...one.commands]);
  const known = new Set(withSubcommands.flatMap(({ options }) => options.map((option) => option.name())));
  for (const [key, value] of Object.entries(config)) {
    if (!known.has(key)) throw badConfigFile(file, `"${key}" is not the name of a flag`);
    const option = command.options.find((one) => one.name() === key);
    if (!option) continue;
    const name = option.attributeName();
    const source = command.getOptionValueSource(name);
    if (source !== undefined && source !== 'default') continue;
    try {
      const parse = option.isBoolean() ? parseBooleanOption : option.parseArg;
      const texts: unknown[] = Array.isArray(value) && isHostOption(option) ? value : [value];
      let parsed: unknown;
      for (const text of texts)
        parsed = parse && typeof text !== 'object' ? parse(String(text), parsed) : text;
      command.setOptionValueWithSource(name, parsed, 'config');
    } catch (error) {
      throw badConfigFile.because(error, file, `"${key}" is ${excerpt(value)}. ${messageOf(error)}`);
    }
  }
}

function readConfig(file: string): object {
  let config: unknown;
  try {
    config = parseJson(readFileSync(file, 'utf8'));
  } catch (error) {
    throw badConfigFile.because(error, file, messageOf(error));
  }
  if (typeof config === 'object' && config !== null && !Array.isArray(config)) return config;
  throw badConfigFile(file, 'it is not a JSON object whose keys are flags, such as {"data": "/srv/tiles"}');
}
