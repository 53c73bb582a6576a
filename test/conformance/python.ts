/** Python programs from PyPI in a folder of their own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Makes a virtual environment with these packages; a reason to skip where that cannot be. */
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

const firstLine = (error: unknown) => String(error).split('\n')[0];

/** What a program prints, on both streams, however it ends. */
export async function outputOf(program: string, args: string[], cwd = '.'): Promise<string> {
  try {
    const { stdout, stderr } = await run(program, args, { maxBuffer: 64e6, cwd });
    return stdout + stderr;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return `${stdout}${stderr}`;
  }
}
