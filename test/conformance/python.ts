/** Python programs from PyPI in a folder of their own, and those that the machine has. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Creates a virtual environment with these packages. Returns a reason to skip if that is impossible. */
export async function installPython(
  folder: string,
  packages: string[],
): Promise<{ bin: string; reason?: undefined } | { reason: string }> {
  const bin = join(folder, 'bin');
  try {
    await run('python3', ['-m', 'venv', folder]);
  } catch (error) {
    return { reason: `python3 with venv is not here: ${firstLine(error)}` };
  }
  try {
    const install = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      // Python compiles the few modules that the programs import.
      '--no-compile',
      '--retries',
      '1',
      '--timeout',
      '10',
    ];
    await run(join(bin, 'python'), [...install, ...packages]);
  } catch (error) {
    return { reason: `packages cannot be had from PyPI: ${firstLine(error)}` };
  }
  return { bin };
}

/**
 * A Python that has the module: the first on the PATH, or the one of the operating system, whose packages (PyQGIS) others do not see.
 * Undefined if neither has it.
 */
export async function pythonWith(module: string): Promise<string | undefined> {
  const look = `import importlib.util, sys; sys.exit(importlib.util.find_spec("${module}") is None)`;
  for (const python of ['python3', '/usr/bin/python3']) {
    const hasIt = await run(python, ['-c', look]).then(
      () => true,
      () => false,
    );
    if (hasIt) return python;
  }
  return undefined;
}

/** The path of a script in `clients`, which people may run by hand as well. */
export const clientScript = (name: string) =>
  fileURLToPath(new URL(`../../../test/conformance/clients/${name}`, import.meta.url));

const firstLine = (error: unknown) => String(error).split('\n')[0];

/** Output of a program on both streams, however it ends. */
export async function outputOf(
  program: string,
  args: string[],
  cwd = '.',
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  try {
    const options = { maxBuffer: 64e6, cwd, env: { ...process.env, ...env } };
    const { stdout, stderr } = await run(program, args, options);
    return stdout + stderr;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return `${stdout}${stderr}`;
  }
}
