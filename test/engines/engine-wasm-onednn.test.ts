import { it } from 'node:test';
import { engineContract, reasonToSkip } from './engine-contract.js';
import { selfTestContract } from './self-test-contract.js';

const reason = await reasonToSkip('wasm-onednn');
if (reason === undefined) {
  engineContract('wasm-onednn');
  selfTestContract('wasm-onednn');
} else it('training engine wasm-onednn', { skip: reason });
