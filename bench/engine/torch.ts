/** PyTorch from PyPI, as a peer. */
import { installPython } from '../support/python.js';

/** The Python that has PyTorch, some gigabytes; undefined if it cannot be installed. */
export const installTorch = (log: (line: string) => void) =>
  installPython('torch', ['torch', 'numpy'], 'torch', log);
